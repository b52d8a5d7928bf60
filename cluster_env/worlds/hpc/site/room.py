"""Room for an episode under way, and for what becomes of all."""

import numpy as np

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import new_records
from cluster_env.worlds.hpc.site.arrays import (
    FAILURE,
    PARTITION,
    STATUS,
    Layout,
    Results,
    Run,
    Work,
)

_MOST_CHECKED = 2**23
"""Units of nodes in all checks of a pass, 64 MiB: what bounds the bookings of a large machine."""

_MOST_BOOKED = 2**20
_MOST_CUTS = 2**20


def room_for(
    layout: Layout, work: Work, batch: Batch, books: bool, users: int, most_bookings: int = 0
) -> Run:
    """Room in which any episode of a batch can be played.

    ``books`` is for a booking a job, ``most_bookings`` that of the site's description.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    num_jobs, num_partitions = batch.most_jobs, layout.partition_set.size
    num_forms = int(work.records["form"].max(initial=0))
    status = new_records(1, STATUS)
    partitions = new_records(num_partitions, PARTITION)
    slots = int(np.minimum(layout.units[:, 0], num_jobs).sum()) + 1
    # Each partition has a booking at most, or each job.
    most = min(num_jobs if books else num_partitions, num_jobs, most_bookings or num_jobs)
    checks = max(min(most, _MOST_CHECKED // (num_nodes * num_resources)), 1)
    booked = min(checks * num_nodes, max(_MOST_BOOKED, num_nodes))

    def ints(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    def indices(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int32)

    return Run(
        status=status,
        unbooked=ints(2),
        partitions=partitions,
        start=ints(num_jobs),
        finish=ints(num_jobs),
        eligible=ints(num_jobs),
        cuts=indices(num_jobs),
        lost=np.zeros(num_jobs, np.bool_),
        queue=indices(num_jobs),
        keys=np.zeros(num_jobs),
        widths=indices(num_jobs),
        ends=ints(num_jobs),
        running=indices(num_jobs),
        expected=ints(num_jobs),
        expected_jobs=indices(num_jobs),
        later=ints(num_jobs),
        later_jobs=indices(num_jobs),
        pending=indices(num_jobs),
        ready=ints(num_jobs),
        used=ints(work.counter_limit.size),
        usage=np.zeros(users),
        free=ints(num_nodes, num_resources),
        down=indices(num_nodes),
        clear=ints(num_nodes),
        set_free=ints(num_sets, num_resources),
        slot=indices(num_jobs),
        slot_next=indices(slots),
        slot_node=indices(slots),
        slot_size=indices(slots),
        closed=ints(num_nodes),
        set_closed=ints(num_sets),
        set_waiting=ints(num_sets),
        failing=np.zeros(num_nodes, np.bool_),
        too_long=ints(num_forms + 1),
        too_long_pass=ints(num_forms + 1),
        booked=ints(num_jobs),
        blocked=indices(num_jobs),
        begun=indices(num_jobs),
        can=ints(num_nodes),
        offers=ints(num_nodes),
        chosen=indices(num_nodes),
        chosen_size=indices(num_nodes),
        future=ints(num_nodes, num_resources),
        check_time=ints(checks),
        check_row=indices(checks),
        check_free=ints(checks, num_nodes, num_resources),
        check_sets=ints(checks, num_sets),
        book_job=indices(checks),
        book_first=ints(checks + 1),
        book_node=indices(booked),
        book_size=indices(booked),
        edge_time=ints(2 * checks),
        edge_booking=indices(2 * checks),
        edge_sign=indices(2 * checks),
    )


def results_for(layout: Layout, batch: Batch) -> Results:
    """Room for what becomes of all jobs."""
    # A failure ends at most what its nodes can hold.
    failures = np.flatnonzero(layout.entry_kind == FAILURE)
    most = 0
    for entry in failures:
        nodes = layout.entry_nodes[layout.entry_first[entry] : layout.entry_first[entry + 1]]
        most += int(np.minimum(layout.units[nodes, 0], batch.most_jobs).sum())
    cuts = min(most * batch.num_episodes, _MOST_CUTS)
    return Results(
        start=np.full(batch.num_places, -1, np.int64),
        finish=np.full(batch.num_places, -1, np.int64),
        eligible=np.full(batch.num_places, -1, np.int64),
        cuts=np.zeros(batch.num_places, np.int32),
        lost=np.zeros(batch.num_places, np.bool_),
        time=np.zeros(batch.num_episodes, np.int64),
        truncated=np.zeros(batch.num_episodes, np.bool_),
        cut_place=np.zeros(cuts, np.int64),
        cut_begin=np.zeros(cuts, np.int64),
        cut_end=np.zeros(cuts, np.int64),
    )
