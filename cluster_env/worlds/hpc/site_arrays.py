"""A site, its jobs and an episode under way as compiled code reads them.

A node is a row of units. What a job may use is a *set* of nodes: those of its partition that have
its features, or are in its reservation. Sets may overlap. Times are in seconds; those of the
calendar are by the log's clock, and `STATUS.shift` says what it shows when an episode begins.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.hpc.events import CLOCK, SUMS
from cluster_env.worlds.hpc.jobs import ASKED

FAILURE, PLANNED, RESERVATION = range(3)
"""Kinds of entries of a calendar."""

NO_SLOT = -1

Records = Any  # np.recarray, of whose fields a type checker knows nothing
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]


class Layout(NamedTuple):
    """What does not change: nodes, sets of nodes, and the calendar."""

    units: Ints  # (num_nodes, num_resources)
    total: Ints  # (num_resources,)
    weight: Ints  # (num_nodes,), nodes of lower weight are taken first
    set_first: Ints  # (num_sets + 1,), where the nodes of each set begin
    set_nodes: Indices  # in the order in which they are filled
    set_units: Ints  # (num_sets, num_resources)
    in_set: NDArray[np.bool_]  # (num_sets, num_nodes)
    node_first: Ints  # (num_nodes + 1,), where the sets of each node begin
    node_sets: Indices
    partition_set: Indices  # (num_partitions,), the set of all its nodes
    change_time: Ints  # (num_changes,), when something of the calendar changes, rising
    change_entry: Indices  # (num_changes,), of the calendar
    entry_kind: Indices  # (num_entries,)
    entry_start: Ints  # (num_entries,)
    entry_end: Ints  # (num_entries,)
    entry_known: Ints  # (num_entries,), from when on it is known
    entry_first: Ints  # (num_entries + 1,), where the nodes of each entry begin
    entry_nodes: Indices
    block_first: Ints  # (num_nodes + 1,), where the planned entries of each node begin
    blocks: Indices
    block_ends: Ints  # when a planned entry ends, rising
    consecutive: bool  # whether runs of consecutive nodes go first, as in Slurm
    best_fit: bool  # whether the node goes first on which least stays free, or the next in order
    lost: bool  # whether jobs on a node that fails are lost, and not requeued
    half_life: float  # seconds in which what a user has used fades by half
    max_age: float  # seconds of waiting from which age gains nothing more


SITE_JOB = (
    "may_start",  # 1 if it may start now, by nodes, limits and calendar
    "backfills",  # 1 if it may start and delays the first job of no partition
    "partition_free",  # processors of its partition that are free
    "partition_processors",  # all of them
    "limit_room",  # how many jobs that count as much its limits let start now
)
"""What a state at a site has of each job that a policy sees, behind its demands."""

MAY_START, BACKFILLS, PARTITION_FREE, PARTITION_PROCESSORS, LIMIT_ROOM = range(len(SITE_JOB))


JOB = np.dtype(
    [
        *ASKED,
        # Its set of nodes, its partition and the tier of that.
        *((name, np.int32) for name in ("set", "partition", "tier")),
        # Least and most nodes that it takes, and whether these are its own while it runs.
        *((name, np.int32) for name in ("least", "most")),
        ("exclusive", np.bool_),
        # Jobs of one form fit in the same places.
        ("form", np.int32),
        # Its reservation, -1 if it has none; how many jobs of its jobset must end before it.
        *((name, np.int32) for name in ("reservation", "predecessors")),
        # Seconds from their ends to its submission, -1 where it is submitted at its arrival.
        ("think", np.int64),
        # Whether they must end well, and whether it does not itself.
        *((name, np.bool_) for name in ("after_ok", "failed")),
    ],
    align=True,
)
"""Of a job, but for its demands."""


class Work(NamedTuple):
    """What the jobs of several jobsets, one after the other, are at a site beside `Jobs`."""

    brief: Indices  # (num_jobs, 3), processors, set and partition: what a look at most jobs needs
    charge_first: Ints  # (num_jobs + 1,), where the counters of each job begin
    charge_counter: Indices
    charge_amount: Ints
    charge_checked: NDArray[np.bool_]  # whether the limit holds for the job, or counts it alone
    counter_limit: Ints  # (num_counters,)
    counter_row: Ints  # (num_counters,), of `held` where nodes are counted, -1 for others
    next_first: Ints  # (num_jobs + 1,), where the jobs that wait for the end of each begin
    next_jobs: Indices  # as counted in their jobset


STATUS = np.dtype(
    [
        *CLOCK,
        # What the log's clock shows at time 0.
        ("shift", np.int64),
        # Jobs that will enter the queue after others; the next change of the calendar, and nodes
        # that have failed.
        *((name, np.int64) for name in ("later", "change", "down")),
        # The arena of placements: its first free slot. How many nodes have room for the job that is
        # looked at, and how many are chosen.
        *((name, np.int64) for name in ("free_slot", "roomy", "chosen")),
        # Of the last pass: its number, times at which room is checked, bookings, their nodes and
        # edges.
        *((name, np.int64) for name in ("stamp", "checks", "bookings", "booked_nodes", "edges")),
        # Of it, too: jobs that are blocked, of which so many are booked, and so many are to be
        # before anything else; since when nothing ended, and whether it has closed any nodes.
        *((name, np.int64) for name in ("blocked", "booked", "due", "settled")),
        ("closes", np.bool_),
        # Whether the nodes of jobs that have ended are kept, too, to be read afterwards; and
        # whether partitions have several tiers.
        *((name, np.bool_) for name in ("keeps_nodes", "tiered")),
    ],
    align=True,
)
"""Of an episode."""

PARTITION = np.dtype(
    [
        # Waiting and running jobs, and the pass in which its first job was blocked.
        *((name, np.int64) for name in ("waiting", "running", "blocked")),
        *SUMS,
    ],
    align=True,
)
"""Of a partition, or of all: what a scorer sees of it."""

# The next slot of the same job, or that is free; a node, and processors on it.
SLOT = np.dtype([(name, np.int32) for name in ("next", "node", "units")], align=True)
"""Of a place in the arena of placements."""


class Cuts(NamedTuple):
    """The runs that failures have cut short in all episodes, in the order in which it happened."""

    number: Ints  # (1,), how many; those beyond the room for them are counted alone
    place: Ints  # (most_cuts,), place of the job of each
    begin: Ints  # (most_cuts,)
    end: Ints  # (most_cuts,)


class Beginning(NamedTuple):
    """A moment that an episode is brought to: the first jobs of its jobset run then, no other has.

    Before it jobs only enter the queue.
    """

    time: int  # when those jobs get their nodes
    first_pass: int  # from when on there are passes, at `time` or right after it
    watched: int  # first jobs that have all started when the episode may end; 0 for all jobs to end
    first: Ints  # (num_running + 1,), where the nodes of each begin, at least one
    node: Indices
    size: Indices  # processors on each


EMPTY = Beginning(-1, 0, 0, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
"""Of a machine on which nothing has happened yet."""


class Scratch(NamedTuple):
    """Room for what lasts for one pass, or less; a `num_jobs` is that of the largest jobset."""

    stamp: Ints  # (1,), the number of the last pass over any queue
    unbooked: Ints  # (2,), how often no booking was left, and no room for the nodes of one
    closed: Ints  # (num_nodes,), the pass in which a node was closed for later jobs
    set_closed: Ints  # (num_sets,)
    failing: NDArray[np.bool_]  # (num_nodes,)
    too_long: Ints  # (num_forms,), seconds from which a form does not fit in a pass, and the pass
    too_long_pass: Ints
    booked: Ints  # (num_jobs,), the pass in which a job was blocked and got its booking
    blocked: Indices  # (num_jobs,), those of a pass in order
    place: Indices  # (num_nodes,), places in a job's set of the nodes that have room for it
    can: Ints  # (num_nodes,), processors that it can have on each of these
    offers: Ints  # (num_nodes,), the same by place, while consecutive nodes are chosen
    chosen: Indices  # (num_nodes,), nodes, and processors on them
    chosen_size: Indices
    future: Ints  # (num_nodes, num_resources), what is free at a later time
    check_time: Ints  # (most_checks,), rising
    check_row: Indices  # (most_checks,), the row of each in the next one; then those not in use
    check_free: Ints  # (most_checks, num_nodes, num_resources)
    check_sets: Ints  # (most_checks, num_sets), processors that are free in each set
    book_job: Indices  # (most_checks,)
    book_first: Ints  # (most_checks + 1,), where the nodes of each booking begin
    book_node: Indices  # (most_booked,)
    book_size: Indices
    edge_time: Ints  # (2 * most_checks,), where bookings begin and end, rising
    edge_booking: Indices
    edge_sign: Indices


class SiteRows(NamedTuple):
    """What episodes at a site have beside `Rows`, and what they share; or one, `Episode.site`."""

    # What has become of the jobs, by place.
    finish: Ints  # (num_places,), of a lost job when it died, -1 for never
    eligible: Ints  # (num_places,), when it entered the queue, -1 for never
    cuts: Indices  # (num_places,), how many runs a failure has cut short
    lost: NDArray[np.bool_]  # (num_places,)
    # Jobs on their way, by place.
    later: Ints  # (num_places,), heap of times at which jobs enter the queue, and who does
    later_jobs: Indices
    pending: Indices  # (num_places,), jobs that must end before it, -1 if one did not end well
    ready: Ints  # (num_places,), when the last of them has ended, and the think time is over
    slot: Indices  # (num_places,), where the placement of a job begins, -1 if it has none
    # Partitions, limits and nodes, by episode.
    partitions: Records  # (num_rows, num_partitions + 1), see `PARTITION`; the last one is of all
    used: Ints  # (num_rows, num_counters)
    held: Indices  # (num_rows, counters of nodes, num_nodes), how many of their jobs are on a node
    free: Ints  # (num_rows, num_nodes, num_resources)
    down: Indices  # (num_rows, num_nodes), failures that last
    clear: Ints  # (num_rows, num_nodes), until when nothing planned begins; 0 while it lasts
    set_free: Ints  # (num_rows, num_sets, num_resources), of nodes that have not failed
    set_waiting: Ints  # (num_rows, num_sets), jobs in the queue
    slots: Records  # (num_rows, num_slots), see `SLOT`
    # What all share: what does not change, and the room for passes.
    layout: Layout
    work: Work
    room: Scratch
    cut: Cuts
