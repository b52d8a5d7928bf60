"""Room for episodes under way, for passes, and for what becomes of all jobs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import new_records
from cluster_env.worlds.hpc.events import AT_ARRIVAL
from cluster_env.worlds.hpc.site.arrays import (
    FAILURE,
    PARTITION,
    STATUS,
    Cuts,
    Layout,
    Results,
    Scratch,
    SiteRows,
    Work,
)

_MOST_CHECKED = 2**23
"""Units of nodes in all checks of a pass, 64 MiB: what bounds the bookings of a large machine."""

_MOST_BOOKED = 2**20
_MOST_CUTS = 2**20


def _ints(*shape: int) -> NDArray[np.int64]:
    return np.zeros(shape, np.int64)


def _indices(*shape: int) -> NDArray[np.int32]:
    return np.zeros(shape, np.int32)


def rows_for(
    layout: Layout,
    work: Work,
    num_rows: int,
    num_places: int,
    most_jobs: int,
    seen: bool = False,
    keeps_nodes: bool = False,
) -> SiteRows:
    """Room for so many episodes, and jobs of all of them, with at most so many of one.

    ``seen`` says whether states show what was true when a job arrived, ``keeps_nodes`` whether
    there is room for the nodes of all jobs at once.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    slots = int(np.minimum(layout.units[:, 0], most_jobs).sum()) + 1
    if keeps_nodes:
        most_nodes = np.minimum(work.records["most"], work.demand[:, 0]).astype(np.int64)
        slots = int(np.add.reduceat(most_nodes, work.first[:-1]).max()) + 1
    users = int(work.records["user"].max(initial=0)) + 1
    return SiteRows(
        partitions=new_records((num_rows, layout.partition_set.size + 1), PARTITION),
        queue=_indices(num_places),
        keys=np.zeros(num_places),
        widths=_indices(num_places),
        ends=_ints(num_places),
        running=_indices(num_places),
        expected=_ints(num_places),
        expected_jobs=_indices(num_places),
        later=_ints(num_places),
        later_jobs=_indices(num_places),
        pending=_indices(num_places),
        ready=_ints(num_places),
        slot=_indices(num_places),
        at_arrival=_indices(num_places if seen else 0, len(AT_ARRIVAL)),
        used=_ints(num_rows, work.counter_limit.size),
        held=_indices(num_rows, int(work.counter_row.max(initial=-1)) + 1, num_nodes),
        usage=np.zeros((num_rows, users)),
        free=_ints(num_rows, num_nodes, num_resources),
        down=_indices(num_rows, num_nodes),
        clear=_ints(num_rows, num_nodes),
        set_free=_ints(num_rows, num_sets, num_resources),
        set_waiting=_ints(num_rows, num_sets),
        slot_next=_indices(num_rows, slots),
        slot_node=_indices(num_rows, slots),
        slot_size=_indices(num_rows, slots),
    )


def scratch_for(
    layout: Layout, work: Work, most_jobs: int, books: bool, most_bookings: int = 0
) -> Scratch:
    """Room for passes over a queue of at most so many jobs.

    ``books`` is for a booking a job, ``most_bookings`` that of the site's description.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    num_partitions, num_forms = layout.partition_set.size, int(work.records["form"].max(initial=0))
    # Each partition has a booking at most, or each job.
    most = min(most_jobs if books else num_partitions, most_jobs, most_bookings or most_jobs)
    checks = max(min(most, _MOST_CHECKED // (num_nodes * num_resources)), 1)
    booked = min(checks * num_nodes, max(_MOST_BOOKED, num_nodes))
    return Scratch(
        stamp=_ints(1),
        unbooked=_ints(2),
        closed=_ints(num_nodes),
        set_closed=_ints(num_sets),
        failing=np.zeros(num_nodes, np.bool_),
        too_long=_ints(num_forms + 1),
        too_long_pass=_ints(num_forms + 1),
        booked=_ints(most_jobs),
        blocked=_indices(most_jobs),
        begun=_indices(most_jobs),
        can=_ints(num_nodes),
        offers=_ints(num_nodes),
        chosen=_indices(num_nodes),
        chosen_size=_indices(num_nodes),
        future=_ints(num_nodes, num_resources),
        check_time=_ints(checks),
        check_row=np.arange(checks, dtype=np.int32),
        check_free=_ints(checks, num_nodes, num_resources),
        check_sets=_ints(checks, num_sets),
        book_job=_indices(checks),
        book_first=_ints(checks + 1),
        book_node=_indices(booked),
        book_size=_indices(booked),
        edge_time=_ints(2 * checks),
        edge_booking=_indices(2 * checks),
        edge_sign=_indices(2 * checks),
    )


def results_for(work: Work, jobset: NDArray[Any], place: NDArray[Any], num_places: int) -> Results:
    """Room for what becomes of the jobs of episodes, of a jobset and a place each."""
    status = new_records(jobset.size, STATUS)
    status.jobset, status.place = jobset, place
    status.first, status.shift = work.first[jobset], work.shift[jobset]
    status.num_jobs = work.first[jobset + 1] - work.first[jobset]
    status.num_users, status.shares = work.num_users[jobset], True
    status.tiered = np.unique(work.records.tier).size > 1
    return Results(
        status=status,
        start=np.full(num_places, -1, np.int64),
        finish=np.full(num_places, -1, np.int64),
        eligible=np.full(num_places, -1, np.int64),
        cuts=np.zeros(num_places, np.int32),
        lost=np.zeros(num_places, np.bool_),
    )


def cuts_for(layout: Layout, batch: Batch) -> Cuts:
    """Room for runs that are cut short: a failure ends at most what its nodes can hold."""
    most = 0
    for entry in np.flatnonzero(layout.entry_kind == FAILURE):
        nodes = layout.entry_nodes[layout.entry_first[entry] : layout.entry_first[entry + 1]]
        most += int(np.minimum(layout.units[nodes, 0], batch.most_jobs).sum())
    most = min(most * batch.num_episodes, _MOST_CUTS)
    return Cuts(_ints(1), _ints(most), _ints(most), _ints(most))
