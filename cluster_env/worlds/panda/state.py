"""The state of clouds under way, as compiled functions work on it, and what agents see of it.

A *row* is an agent: one consumer of one episode. The rows of an episode stand together, in the
order of arrival, so that a row is the first row of its episode plus the number of the consumer.
Compiled functions see one `Episode` at a time, in which consumers and nodes have their numbers.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.core.jobs import LARGEST

COMING, WAITING, RUNNING, DONE = range(4)
"""What has become of a consumer."""

RETURN, ANNOUNCE, LEAVE = range(3)
"""What happens to a node; at one instant in this order."""

BY_ARRIVAL, BY_NEED = range(2)
"""Who gets a node that several agents catch."""


class Header(NamedTuple):
    """Columns of what a state begins with; the plans, observed nodes and held nodes follow."""

    waited: int  # steps since the arrival
    left: int  # steps of work at speed 1, rounded up
    cores: int  # of the specification, as the next three
    memory: int
    core_type: int  # 1 + its number, 0 for any
    topology: int
    held_cores: int
    held_memory: int
    held_nodes: int
    free_nodes: int  # of the cloud, as the next one
    free_cores: int
    waiting: int  # agents that wait
    waiting_cores: int  # that these ask for
    running: int
    ahead: int  # of those that wait, agents that arrived before
    satisfied: int  # 1 if the held nodes satisfy the specification
    free_work: int  # what all free nodes can do in a step, in core steps at speed 1


class PlanColumns(NamedTuple):
    """What a state has of each plan, with the nodes that are held; all 0 where there is none."""

    nodes: int
    cores: int
    work: int  # what they can do in a step, in core steps at speed 1
    steps: int  # of the run on them
    wanted: int  # consumers that wait for whom a node's type is nearest; in hundredths, the mean


class NodeColumns(NamedTuple):
    """What a state has of each node; all 0 where none is."""

    present: int
    cores: int
    memory: int
    speed: int  # in hundredths
    same_rack: int  # as the first node that is held
    same_region: int
    notice: int  # 1 + the steps until it leaves, 0 if no departure is announced
    plans: int  # the sum of 2**p over the plans p that it belongs to


HEADER = Header(*range(len(Header._fields)))
PLAN_SEEN = PlanColumns(*range(len(PlanColumns._fields)))
NODE_SEEN = NodeColumns(*range(len(NodeColumns._fields)))

_SPECIFICATION = np.array(
    [HEADER.left, HEADER.cores, HEADER.memory, HEADER.core_type, HEADER.topology]
)


def specification_columns(states: NDArray[np.int32]) -> NDArray[np.int32]:
    """The columns of some states that say what a consumer asks for, int32 ``(n, 5)``."""
    return states.take(_SPECIFICATION, axis=1)


PLANS = ("tight", "fast", "lean")
"""Sets of nodes that the supervisor works out for each agent among those that it sees, with which
what it holds would satisfy its specification: those with the fewest cores, those with the shortest
run, and those that could do the least in that time. See `plans.propose`."""

PLANS_AT, PLAN_SIZE = len(HEADER), len(PLAN_SEEN)
"""Where the plans begin in a state, and how many numbers each has."""

NODES_AT, NODE_SIZE = PLANS_AT + len(PLANS) * PLAN_SIZE, len(NODE_SEEN)
"""The same of the nodes."""


@lru_cache
def state_space(num_items: int) -> spaces.Box:
    """Of the state of an agent with places for so many nodes, observed and held."""
    return spaces.Box(0, LARGEST, (NODES_AT + num_items * NODE_SIZE,), np.int32)


class Cloud(NamedTuple):
    """The nodes and the rules; see `cluster_env.worlds.panda.world.Panda`."""

    type: NDArray[np.int32]  # (num_nodes,), as the next four
    cores: NDArray[np.int64]
    memory: NDArray[np.int64]
    core_type: NDArray[np.int64]
    speed: NDArray[np.float64]
    place: NDArray[np.int32]  # (3, num_nodes), by topology: 0 for all, its region, its rack
    num_places: NDArray[np.int64]  # (3,), by topology
    type_speed: NDArray[np.float64]  # (num_types,)
    first_of_type: NDArray[np.int64]  # (num_types + 1,), the last one is the number of nodes
    collision: int
    observed: int
    held: int
    patience: int
    rounds: int
    hybrid: float
    max_time: int


CONSUMER = np.dtype(
    [(name, np.int64) for name in ("arrival", "duration", "cores", "memory", "core_type")]
    + [(name, np.int64) for name in ("topology", "num_types")]
    + [(name, np.float64) for name in ("rate", "finish_gain")],
    align=True,
)
"""A specification, with what its objective costs; ``num_types`` types of nodes pass its filter."""

AGENT = np.dtype(
    [
        ("stage", np.int64),  # `WAITING` and so on
        ("start", np.int64),  # clock of the first start that counts, or -1
        ("began", np.int64),  # clock of the start of the present run, or -1
        ("finish", np.int64),  # clock at which that is to end, or -1
        ("held", np.int64),  # number of nodes, with so many cores and so much memory
        ("held_cores", np.int64),
        ("held_memory", np.int64),
        ("since", np.int64),  # clock since which it has held nodes
        ("left", np.float64),  # work in steps at speed 1
        ("refund", np.float64),  # what its next decision is given back of a run that broke off
    ],
    align=True,
)
"""A consumer of an episode, and its agent."""

NODE = np.dtype([(name, np.int64) for name in ("holder", "leaves", "away")], align=True)
"""A node in an episode: the number of the consumer that holds it, or -1; the announced clock of its
departure, or -1; whether it is away."""

RUN = np.dtype(
    [(name, np.int64) for name in ("consumer", "begin", "end", "held", "counts")]
    + [("work", np.float64)],  # core steps at speed 1 in each step
    align=True,
)
"""One stretch that a consumer ran on the same nodes; one that is lost does not count as work."""

SPAN = np.dtype(
    [(name, np.int64) for name in ("consumer", "count", "row", "event", "num_events")]
    + [(name, np.int64) for name in ("run", "most_runs")],
    align=True,
)
"""Where an episode stands: its first consumer among all and how many there are; its first row; its
events of nodes; and the room for its runs."""

PROGRESS = np.dtype(
    [
        ("time", np.int64),
        ("rounds", np.int64),  # decisions that were taken at the present clock
        ("num_arrived", np.int64),
        ("num_waiting", np.int64),
        ("num_running", np.int64),
        ("num_done", np.int64),
        ("num_events", np.int64),  # that have happened
        ("num_runs", np.int64),
        ("active", np.bool_),
        ("truncated", np.bool_),
    ],
    align=True,
)
"""How far an episode is."""


class Jobs(NamedTuple):
    """The consumers of all jobsets, one after the other, and the events of their nodes."""

    consumers: NDArray[np.void]  # (num_jobs,) of `CONSUMER`
    types: NDArray[np.int64]  # (num_jobs, num_types), those that pass the filter, nearest first
    late_rate: NDArray[np.float64]  # (num_jobs, num_late)
    late_after: NDArray[np.int64]  # (num_jobs, num_late)
    events: NDArray[np.int64]  # (num_events, 4): clock, what happens, node, clock of its departure


class Episodes(NamedTuple):
    """Episodes side by side, and their rows."""

    spans: NDArray[np.void]  # (num_episodes,) of `SPAN`
    progress: NDArray[np.void]  # (num_episodes,) of `PROGRESS`
    nodes: NDArray[np.void]  # (num_episodes, num_nodes) of `NODE`
    runs: NDArray[np.void]  # of `RUN`, room for all that there can be
    run_nodes: NDArray[np.int64]  # (room, most held)
    number: NDArray[np.int32]  # (num_rows,), of each row's episode
    agents: NDArray[np.void]  # (num_rows,) of `AGENT`
    held: NDArray[np.int64]  # (num_rows, most held), nodes
    shown: NDArray[np.int64]  # (num_rows, observed), nodes; -1 where none is
    waiting: NDArray[np.int64]  # (num_rows,): in each episode's rows, its waiting consumers
    running: NDArray[np.int64]  # (num_rows,): in the same way, those that run
    active: NDArray[np.bool_]  # (num_rows,)
    truncated: NDArray[np.bool_]  # (num_rows,)
    time: NDArray[np.int64]  # (num_rows,)
    states: NDArray[np.int32]  # (num_rows, state_size)


class Episode(NamedTuple):
    """One episode: views of all arrays, in which a consumer stands at its number."""

    cloud: Cloud
    first_row: int
    progress: NDArray[np.void]  # (1,) of `PROGRESS`
    consumers: NDArray[np.void]  # (count,) of `CONSUMER`; the next ones as in `Jobs`
    types: NDArray[np.int64]
    late_rate: NDArray[np.float64]
    late_after: NDArray[np.int64]
    events: NDArray[np.int64]
    nodes: NDArray[np.void]  # (num_nodes,) of `NODE`; the next ones as in `Episodes`
    runs: NDArray[np.void]
    run_nodes: NDArray[np.int64]
    agents: NDArray[np.void]
    held: NDArray[np.int64]
    shown: NDArray[np.int64]
    waiting: NDArray[np.int64]
    running: NDArray[np.int64]
    active: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    time: NDArray[np.int64]
    states: NDArray[np.int32]


class Offer(NamedTuple):
    """Nodes that can be picked from; a rule writes to ``picked``."""

    cores: NDArray[np.int64]  # (most,), as the next four
    memory: NDArray[np.int64]
    speed: NDArray[np.float64]
    node: NDArray[np.int64]  # what to call it; of equal ones, the lowest goes first
    left: NDArray[np.bool_]  # whether it has not been picked
    picked: NDArray[np.int64]  # (most,), places of this offer


class Scratch(NamedTuple):
    """Room for what is worked out at one instant."""

    offer: Offer
    chosen: NDArray[np.int64]  # (num_nodes,): begins with the best set so far
    tried: NDArray[np.int64]  # (num_nodes,): begins with one that is compared with it
    reserved: NDArray[np.bool_]  # (num_nodes,): nodes that are kept for somebody
    queue: NDArray[np.int64]  # (most consumers,): those that wait, as they get their turn
    picker: NDArray[np.int64]  # (num_nodes,): place in the queue of who has picked it, or -1
    withdrawn: NDArray[np.bool_]  # (most consumers,), by place in the queue
    score: NDArray[np.float64]  # (most consumers,), the same
    nearest: NDArray[np.int64]  # (num_nodes,): consumers that wait, by the type nearest to them
    least: NDArray[np.float64]  # (plans,): what each of `PLANS` has the least of
    members: NDArray[np.int64]  # (plans, num_nodes): begins with the nodes that are to be caught
    num_members: NDArray[np.int64]  # (plans,)
    facts: NDArray[np.int64]  # (plans, `PLAN_SEEN`)
    pair: NDArray[np.float64]  # features of a consumer and one of its plans


def new_offer(num_nodes: int) -> Offer:
    """Makes room for so many nodes."""
    numbers = np.zeros((4, num_nodes), np.int64)
    speed, left = np.zeros(num_nodes), np.zeros(num_nodes, np.bool_)
    return Offer(numbers[0], numbers[1], speed, numbers[2], left, numbers[3])


def new_scratch(num_nodes: int, most_consumers: int, num_features: int) -> Scratch:
    """Makes room for a cloud, its largest jobset, and the features of a pair."""
    return Scratch(
        new_offer(num_nodes),
        chosen=np.zeros(num_nodes, np.int64),
        tried=np.zeros(num_nodes, np.int64),
        reserved=np.zeros(num_nodes, np.bool_),
        queue=np.zeros(most_consumers, np.int64),
        picker=np.zeros(num_nodes, np.int64),
        withdrawn=np.zeros(most_consumers, np.bool_),
        score=np.zeros(most_consumers),
        nearest=np.zeros(num_nodes, np.int64),
        least=np.zeros(len(PLANS)),
        members=np.zeros((len(PLANS), num_nodes), np.int64),
        num_members=np.zeros(len(PLANS), np.int64),
        facts=np.zeros((len(PLANS), len(PLAN_SEEN)), np.int64),
        pair=np.zeros(num_features),
    )


@njit_inlined
def episode_of(cloud: Cloud, jobs: Jobs, episodes: Episodes, number: int) -> Episode:
    """Views of one episode."""
    # Slices of consecutive rows are views, and cost next to nothing.
    span = episodes.spans[number]
    first, last = span.consumer, span.consumer + span.count
    row, end = span.row, span.row + span.count
    run, last_run = span.run, span.run + span.most_runs
    return Episode(
        cloud,
        row,
        episodes.progress[number : number + 1],  # numba returns arrays, but no single record
        jobs.consumers[first:last],
        jobs.types[first:last],
        jobs.late_rate[first:last],
        jobs.late_after[first:last],
        jobs.events[span.event : span.event + span.num_events],
        episodes.nodes[number],
        episodes.runs[run:last_run],
        episodes.run_nodes[run:last_run],
        episodes.agents[row:end],
        episodes.held[row:end],
        episodes.shown[row:end],
        episodes.waiting[row:end],
        episodes.running[row:end],
        episodes.active[row:end],
        episodes.truncated[row:end],
        episodes.time[row:end],
        episodes.states[row:end],
    )
