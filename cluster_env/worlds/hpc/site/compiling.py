"""From the description of a site and the attributes of jobs to what compiled code works in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import new_records
from cluster_env.core.jobs import JobSet
from cluster_env.sites.description import Site
from cluster_env.sites.limits import Counters, charge_limits, charge_throttles
from cluster_env.sites.requests import Requests
from cluster_env.worlds.hpc.jobs import Jobs, Records, jobs_asked, num_users
from cluster_env.worlds.hpc.site_arrays import (
    FAILURE,
    JOB,
    PARTITION,
    PLANNED,
    RESERVATION,
    SLOT,
    STATUS,
    Cuts,
    Layout,
    Scratch,
    SiteRows,
    Work,
)

_MOST_CHECKED = 2**23
"""Units of nodes in all checks of a pass, 64 MiB: what bounds the bookings of a large machine."""

_MOST_BOOKED = 2**20
_MOST_CUTS = 2**20

_KINDS = {"failure": FAILURE, "planned": PLANNED, "reservation": RESERVATION}


def layout_of(site: Site, requests: Requests) -> Layout:
    """Nodes, the sets of nodes that some job may use, and the calendar."""
    _, masks, of_partition = requests.sets
    order = np.lexsort((np.arange(site.num_nodes), site.node_weights))
    set_first, set_nodes = _lists([order[mask[order]] for mask in masks])
    node_first, node_sets = _lists([np.flatnonzero(column) for column in masks.T])
    # When something of the calendar changes.
    kinds = np.array([_KINDS[one.kind] for one in site.calendar], np.int32)
    columns = [
        np.array([getattr(one, name) for one in site.calendar], np.int64)
        for name in ("start", "end", "known_from")
    ]
    start, end, known = columns
    entries = np.arange(len(site.calendar))
    planned = kinds != FAILURE
    times = np.concatenate([start, end, known[planned]])
    changed = np.concatenate([entries, entries, entries[planned]])
    rising = np.argsort(times, kind="stable")
    entry_first, entry_nodes = _lists([np.flatnonzero(mask) for mask in site.outage_nodes])
    there = np.array(site.outage_nodes, np.bool_).reshape(-1, site.num_nodes)
    block_entry, block_node = np.nonzero(there & planned[:, None])
    by_node = np.argsort(block_node, kind="stable")
    of_node = np.bincount(block_node, minlength=site.num_nodes)
    return Layout(
        units=site.units,
        total=site.units.sum(axis=0),
        weight=site.node_weights,
        set_first=set_first,
        set_nodes=set_nodes,
        set_units=masks.astype(np.int64) @ site.units,
        in_set=np.ascontiguousarray(masks),
        node_first=node_first,
        node_sets=node_sets,
        partition_set=of_partition.astype(np.int32),
        change_time=times[rising],
        change_entry=changed[rising].astype(np.int32),
        entry_kind=kinds,
        entry_start=start,
        entry_end=end,
        entry_known=known,
        entry_first=entry_first,
        entry_nodes=entry_nodes,
        block_first=np.concatenate([[0], np.cumsum(of_node)]).astype(np.int64),
        blocks=block_entry[by_node].astype(np.int32),
        block_ends=np.sort(end[planned]),
        consecutive=site.placement == "consecutive",
        best_fit=site.placement != "order",
        lost=site.when_node_fails == "lost",
        half_life=float(site.half_life_s),
        max_age=float(site.max_age_s),
    )


def jobs_of(site: Site, batch: Batch, requests: Requests, model: int) -> tuple[Jobs, Work]:
    """The jobs of a batch."""
    jobs, columns = jobs_asked(batch, JOB, requests.demand, model), requests.columns
    records, demand = jobs.records, jobs.demand
    tiers = np.array([one.tier for one in site.partitions])
    next_first, next_jobs, predecessors = _dependencies(batch)
    filled = {
        "set": requests.sets[0],
        "partition": columns["partition"],
        "tier": tiers[columns["partition"]],
        "least": requests.least,
        "most": requests.most,
        "exclusive": requests.exclusive,
        "form": requests.forms[0],
        "reservation": columns["reservation"],
        "predecessors": predecessors,
        "think": columns["think_s"],
        "after_ok": columns["after_ok"] > 0,
        "failed": columns["failed"] > 0,
    }
    for name, column in filled.items():
        records[name] = column
    # Limits, and throttles of arrays.
    counters = Counters()
    charge_limits(counters, site, columns, requests.counted)
    charge_throttles(counters, columns)
    first, counter, amount, checked, limits = counters.by_job(records.size)
    of_nodes = np.array(counters.of_nodes, np.bool_)
    brief = np.stack([demand[:, 0], records["set"], records["partition"]], axis=1)
    return jobs, Work(
        brief=brief.astype(np.int32),
        charge_first=first,
        charge_counter=counter,
        charge_amount=amount,
        charge_checked=checked,
        counter_limit=limits,
        counter_row=np.where(of_nodes, np.cumsum(of_nodes) - 1, -1),
        next_first=next_first,
        next_jobs=next_jobs,
    )


def status_of(batch: Batch, jobs: Jobs, models: NDArray[np.int64]) -> Records:
    """The records of the episodes of a batch, with the models of `STATUS`, ``(num_rows,)``."""
    shift = np.array([_shift(one) for one in batch.jobsets], np.int64)
    status = new_records(batch.num_episodes, STATUS)
    status.jobset, status.place, status.model = batch.jobset, batch.place, models
    status.shift, status.num_users = shift[batch.jobset], num_users(batch)[batch.jobset]
    status.tiered = np.unique(jobs.records.tier).size > 1
    return status


def _shift(jobset: JobSet) -> int:
    """What the log's clock shows at time 0."""
    submit = jobset.attributes.get("submit")
    return 0 if submit is None or not jobset.num_jobs else int(submit[0] - jobset.arrival[0])


def _dependencies(batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Who waits for the end of each job, and for how many jobs of its jobset each one waits.

    A predecessor that is not in the jobset counts as ended.
    """
    before: list[NDArray[np.int64]] = []
    after: list[NDArray[np.int64]] = []
    for first, jobset in zip(batch.first, batch.jobsets, strict=False):
        ids, wanted = jobset.attributes.get("job_id"), jobset.attributes.get("after")
        if ids is None or wanted is None or not jobset.num_jobs:
            continue
        order = np.argsort(ids, kind="stable")
        wanted = np.asarray(wanted).reshape(jobset.num_jobs, -1)
        place = np.searchsorted(ids, wanted, sorter=order).clip(max=jobset.num_jobs - 1)
        found = order[place]
        there = (ids[found] == wanted) & (wanted >= 0)
        pairs = np.unique(np.stack([found[there], np.nonzero(there)[0]], axis=1), axis=0)
        before.append(first + pairs[:, 0])
        after.append(first + pairs[:, 1])
    num_jobs = int(batch.first[-1])
    if not before:
        zeros = np.zeros(num_jobs + 1, np.int64)
        return zeros, np.zeros(0, np.int32), np.zeros(num_jobs, np.int32)
    one, other = np.concatenate(before), np.concatenate(after)
    order = np.argsort(one, kind="stable")
    begins = np.repeat(batch.first[:-1], np.diff(batch.first))
    first_next = np.concatenate([[0], np.cumsum(np.bincount(one, minlength=num_jobs))])
    return (
        first_next.astype(np.int64),
        (other - begins[other])[order].astype(np.int32),
        np.bincount(other, minlength=num_jobs).astype(np.int32),
    )


def _lists(parts: list[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Lists of numbers one after the other, and where each begins."""
    first = np.cumsum([0, *(part.size for part in parts)]).astype(np.int64)
    joined = np.concatenate(parts) if parts else np.zeros(0)
    return first, joined.astype(np.int32)


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
    room: Scratch,
    cut: Cuts,
    jobs: Jobs,
    num_rows: int,
    num_places: int,
    keeps_nodes: bool = False,
) -> SiteRows:
    """Room for so many episodes, and jobs of all of them.

    ``keeps_nodes`` says whether there is room for the nodes of all jobs at once.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    slots = int(np.minimum(layout.units[:, 0], np.diff(jobs.first).max()).sum()) + 1
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
        slots=new_records((num_rows, slots), SLOT),
        layout=layout,
        work=work,
        room=room,
        cut=cut,
    )


def scratch_for(layout: Layout, jobs: Jobs, books: bool, most_bookings: int = 0) -> Scratch:
    """Room for passes over a queue.

    ``books`` is for a booking a job, ``most_bookings`` that of the site's description.
    """
    (num_nodes, num_resources), num_sets = layout.units.shape, layout.set_units.shape[0]
    num_partitions, num_forms = layout.partition_set.size, int(jobs.records["form"].max(initial=0))
    most_jobs = int(np.diff(jobs.first).max())
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
        place=_indices(num_nodes),
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
