"""Room for episodes under way, for passes, and for what becomes of all jobs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import new_records
from cluster_env.worlds.hpc.jobs import Jobs
from cluster_env.worlds.hpc.site.arrays import (
    FAILURE,
    PARTITION,
    Cuts,
    Layout,
    Order,
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


def outcomes_for(num_places: int) -> dict[str, NDArray[Any]]:
    """Room for what has become of jobs, by the names that it has in `SiteRows`."""
    return {
        "finish": np.full(num_places, -1, np.int64),
        "eligible": np.full(num_places, -1, np.int64),
        "cuts": _indices(num_places),
        "lost": np.zeros(num_places, np.bool_),
    }


def rows_for(
    layout: Layout,
    work: Work,
    order: Order,
    room: Scratch,
    cut: Cuts,
    jobs: Jobs,
    num_rows: int,
    num_places: int,
    most_jobs: int,
    keeps_nodes: bool = False,
) -> SiteRows:
    """Room for so many episodes, and jobs of all of them, with at most so many of one.

    ``keeps_nodes`` says whether there is room for the nodes of all jobs at once.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    slots = int(np.minimum(layout.units[:, 0], most_jobs).sum()) + 1
    if keeps_nodes:
        most_nodes = np.minimum(jobs.records["most"], jobs.demand[:, 0]).astype(np.int64)
        slots = int(np.add.reduceat(most_nodes, jobs.first[:-1]).max()) + 1
    return SiteRows(
        **outcomes_for(num_places),
        later=_ints(num_places),
        later_jobs=_indices(num_places),
        pending=_indices(num_places),
        ready=_ints(num_places),
        slot=_indices(num_places),
        partitions=new_records((num_rows, layout.partition_set.size + 1), PARTITION),
        used=_ints(num_rows, work.counter_limit.size),
        held=_indices(num_rows, int(work.counter_row.max(initial=-1)) + 1, num_nodes),
        free=_ints(num_rows, num_nodes, num_resources),
        down=_indices(num_rows, num_nodes),
        clear=_ints(num_rows, num_nodes),
        set_free=_ints(num_rows, num_sets, num_resources),
        set_waiting=_ints(num_rows, num_sets),
        slot_next=_indices(num_rows, slots),
        slot_node=_indices(num_rows, slots),
        slot_size=_indices(num_rows, slots),
        layout=layout,
        work=work,
        order=order,
        room=room,
        cut=cut,
    )


def scratch_for(
    layout: Layout, jobs: Jobs, most_jobs: int, books: bool, most_bookings: int = 0
) -> Scratch:
    """Room for passes over a queue of at most so many jobs.

    ``books`` is for a booking a job, ``most_bookings`` that of the site's description.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    num_partitions, num_forms = layout.partition_set.size, int(jobs.records["form"].max(initial=0))
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


def cuts_for(layout: Layout, batch: Batch) -> Cuts:
    """Room for runs that are cut short: a failure ends at most what its nodes can hold."""
    most = 0
    for entry in np.flatnonzero(layout.entry_kind == FAILURE):
        nodes = layout.entry_nodes[layout.entry_first[entry] : layout.entry_first[entry + 1]]
        most += int(np.minimum(layout.units[nodes, 0], batch.most_jobs).sum())
    most = min(most * batch.num_episodes, _MOST_CUTS)
    return Cuts(_ints(1), _ints(most), _ints(most), _ints(most))
