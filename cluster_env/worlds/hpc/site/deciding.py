"""What `cluster_env.worlds.hpc.decisions` asks of a site: who may start now, and starts one by one.

The queue that a policy sees is that of ``fcfs``: overdue jobs, then tiers, then the time of entry.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import FALSE, TRUE, ZERO, njit_called, njit_inlined, njit_kernel
from cluster_env.core.jobs import LARGEST
from cluster_env.core.seeding import uniform
from cluster_env.worlds.hpc.events import NEVER, Episode, Jobs, Machine
from cluster_env.worlds.hpc.reservations import Plan
from cluster_env.worlds.hpc.rules import CHANCE
from cluster_env.worlds.hpc.site.arrays import (
    BACKFILLS,
    LIMIT_ROOM,
    MAY_START,
    PARTITION_FREE,
    PARTITION_PROCESSORS,
)
from cluster_env.worlds.hpc.site.bookings import book, find
from cluster_env.worlds.hpc.site.copying import copy_run, rewind
from cluster_env.worlds.hpc.site.episode import SiteBatch, SiteEpisode, episode_of
from cluster_env.worlds.hpc.site.events import clear, next_instant
from cluster_env.worlds.hpc.site.passes import (
    may_fit,
    start,
    start_jobs,
    within_limits,
    within_limits_of_nodes,
)
from cluster_env.worlds.hpc.site.play import advance
from cluster_env.worlds.hpc.site.queue import Order, is_overdue, move_overdue, rank


@njit_inlined
def clear_episode(episode: Episode) -> None:
    """Puts an episode back to where nothing has happened yet."""
    clear(episode.site.layout, episode.site.work, episode.site.run)


@njit_inlined
def next_event(episode: Episode) -> int:
    """When something happens next; `NEVER` if nothing does that any job waits for."""
    return int(next_instant(episode.site.layout, episode.site.work, episode.site.run))


@njit_inlined
def span(episode: Episode) -> tuple[int, int]:
    """Where jobs stand in the queue that wait: from the first place up to before the second."""
    return ZERO, episode.status[0].waiting


@njit_inlined
def came(episode: Episode, job: int) -> int:
    """When a job entered the queue."""
    return int(episode.site.run.eligible[job])


@njit_called
def advance_episode(episode: Episode) -> None:
    """Lets all happen that happens now, if anything does."""
    site, run, status = episode.site, episode.site.run, episode.status[0]
    if next_event(episode) <= status.time:
        status.event = status.time
        advance(site.layout, site.work, run, site.order.score, status.time)
    if site.order.max_wait > 0 and status.waiting > 0:
        move_overdue(site.work, run, site.order, status.time)


@njit_inlined
def begin_instant(episode: Episode) -> None:
    """Notes the sums over jobs before anybody decides, to the last bit."""
    for k in range(episode.site.run.partitions.size):
        part = episode.site.run.partitions[k]
        part.first_queue_log, part.first_queue_work = part.queue_log, part.queue_work
        part.first_run_log, part.first_run_work = part.run_log, part.run_work
        part.first_run_size = part.run_size


@njit_inlined
def open_pass(site: SiteEpisode) -> None:
    """Begins a look at the queue in which nothing is booked or known."""
    run, status = site.run, site.run.status[0]
    run.stamp[0] += 1
    status.stamp, status.settled = run.stamp[0], run.stamp[0]
    status.checks, status.bookings, status.booked_nodes, status.edges = 0, 0, 0, 0


@njit_inlined
def _is_bounded(episode: Episode) -> bool:
    """Whether a job is overdue; then it counts for how long users have asked."""
    site = episode.site
    return is_overdue(site.run, site.order, np.int64(site.run.queue[0]), episode.status[0].time)


@njit_called
def _find(site: SiteEpisode, index: int, seconds: int, at_once: bool) -> int:
    """The earliest time from which a job, counted among all, fits; see `bookings.find`."""
    now = site.run.status[0].time
    return int(find(site.layout, site.work, site.run, index, seconds, now, at_once))


@njit_called
def may_start(site: SiteEpisode, place: int, bounded: bool) -> bool:
    """Whether the job at a place of the queue may start now beside all that is booked.

    Its nodes are those that `start_at` takes.
    """
    run, status = site.run, site.run.status[0]
    job = np.int64(run.queue[place])
    record, index = site.jobs[job], status.first + job
    seconds = np.int64(record.limit if bounded else record.order_estimate)
    if not may_fit(site.layout, site.work, run, index, seconds):
        return False
    if not within_limits(site.work, run, index):
        return False
    time = _find(site, index, seconds, TRUE)
    if time != status.time:
        run.too_long[record.form], run.too_long_pass[record.form] = seconds, status.settled
        return False
    return bool(within_limits_of_nodes(site.work, run, index))


@njit_called
def _book_at(site: SiteEpisode, place: int, bounded: bool) -> int:
    """Books the job at a place for when it may start, and returns this time.

    It books nothing for one that may start now, that a limit blocks, or for which no time is
    foreseen; the time is `NEVER` for these two.
    """
    run, status = site.run, site.run.status[0]
    job = np.int64(run.queue[place])
    record, index = site.jobs[job], status.first + job
    seconds = np.int64(record.limit if bounded else record.order_estimate)
    if not within_limits(site.work, run, index):
        return int(np.int64(NEVER))
    time = np.int64(_find(site, index, seconds, FALSE))
    if time == status.time and not within_limits_of_nodes(site.work, run, index):
        return int(np.int64(NEVER))
    if status.time < time < NEVER:
        book(site.layout, site.work, run, index, time, time + seconds)
    return int(time)


@njit_called
def place_of(machine: Machine, episode: Episode, plan: Plan, action: int) -> int:
    """Place in the queue of the job that an action starts, -1 for none; see `decisions._place`.

    Overdue jobs go first, and are booked where they cannot start; the plan is not needed here.
    """
    site, run, status = episode.site, episode.site.run, episode.status[0]
    open_pass(site)
    place, now = np.int64(0), status.time
    while place < status.waiting and is_overdue(run, site.order, np.int64(run.queue[place]), now):
        if _book_at(site, place, TRUE) == now and may_start(site, place, TRUE):
            return int(place)
        place += 1
    seen = min(machine.options[0].queue, status.waiting)
    starts = place <= action < seen and may_start(site, action, place > 0)
    return int(np.int64(action if starts else -1))


@njit_called
def first_that_fits(machine: Machine, episode: Episode) -> int:
    """Place of the first job that the policy sees and that may start; -1 if there is none."""
    open_pass(episode.site)
    last = min(episode.status[0].waiting, machine.options[0].queue)
    place, bounded = np.int64(0), last > 0 and _is_bounded(episode)
    while place < last and not may_start(episode.site, place, bounded):
        place += 1
    return int(place if place < last else np.int64(-1))


@njit_called
def start_at(episode: Episode, place: int) -> None:
    """Starts the job at a place of the queue on the nodes that `may_start` has just chosen."""
    site, run, status = episode.site, episode.site.run, episode.status[0]
    job = np.int64(run.queue[place])
    seconds = np.int64(site.jobs[job].estimate)
    start(site.layout, site.work, run, job, status.time, seconds)
    run.set_waiting[site.jobs[job].set] -= 1
    for k in range(place, status.waiting - 1):
        run.queue[k], run.keys[k] = run.queue[k + 1], run.keys[k + 1]
    status.waiting -= 1


@njit_called
def show_jobs(episode: Episode, out: NDArray[np.int32], size: int, last: int) -> tuple[int, int]:
    """Writes what a state shows of jobs at a site alone, see `SITE_JOB`.

    ``out`` begins with that of the first job, jobs are ``size`` numbers apart, and those up to
    ``last`` are seen. Units that are free on all nodes go to `Episode.free`. Returns in how many
    seconds the first job is expected to start, and what is spare beside it then.
    """
    site, run, status = episode.site, episode.site.run, episode.status[0]
    layout = site.layout
    for r in range(episode.free.size):
        episode.free[r] = 0
        for node in range(layout.units.shape[0]):
            episode.free[r] += run.free[node, r] if run.down[node] == 0 else 0
    open_pass(site)
    for place in range(last):  # who may start, and in what partition
        job = np.int64(run.queue[place])
        own = layout.partition_set[site.jobs[job].partition]
        shown = place * size
        out[shown + MAY_START] = may_start(site, place, FALSE)
        out[shown + PARTITION_FREE] = run.set_free[own, 0]
        out[shown + PARTITION_PROCESSORS] = layout.set_units[own, 0]
        out[shown + LIMIT_ROOM] = _room(site, job)
    # The first job of each partition is booked, if only room keeps it from starting now.
    open_pass(site)
    reservation, spare = np.int64(0), np.int64(0)
    for place in range(last):
        job = np.int64(run.queue[place])
        part = run.partitions[site.jobs[job].partition]
        if place > 0 and part.blocked == status.stamp:
            continue
        time = np.int64(_book_at(site, place, FALSE))
        if time < NEVER:
            part.blocked = status.stamp
        if place == 0:
            reservation = min(time - status.time, np.int64(LARGEST))
            which = site.jobs[job].set
            free = run.set_free[which, 0]
            if 0 < reservation < LARGEST:
                free = np.int64(0)
                for k in range(layout.set_first[which], layout.set_first[which + 1]):
                    free += run.future[layout.set_nodes[k], 0]
            spare = max(free - episode.demand[job, 0], np.int64(0))
    for place in range(last):
        shown = place * size
        starts = out[shown + MAY_START] > 0 and may_start(site, place, FALSE)
        out[shown + BACKFILLS] = starts
    return int(reservation), int(spare)


@njit_inlined
def _room(site: SiteEpisode, job: int) -> int:
    """How many jobs that count as much the limits of a job, but those of nodes, let start now."""
    run, work, room = site.run, site.work, np.int64(LARGEST)
    index = run.status[0].first + job
    for k in range(work.charge_first[index], work.charge_first[index + 1]):
        counter, amount = work.charge_counter[k], work.charge_amount[k]
        if work.charge_checked[k] and amount > 0 and work.counter_row[counter] < 0:
            room = min(room, max(work.counter_limit[counter] - run.used[counter], 0) // amount)
    return int(room)


@njit_kernel
def choose_at_site(
    machine: Machine,
    jobs: Jobs,
    batch: SiteBatch,
    which: NDArray[np.int32],
    uniforms: NDArray[np.float64],
    order: Order,
    copy: SiteBatch,
    actions: NDArray[np.int32],
) -> None:
    """Chooses what a rule or scorer would start next in some rows, see `scheduler.choose_by_rule`.

    The instant is played from its beginning in ``copy``, a batch of one row.
    """
    for i in range(which.size):
        row = np.int64(which[i])
        actions[i] = machine.options[0].queue
        own = episode_of(machine, jobs, batch, row).site
        status, now = own.run.status[0], own.run.status[0].time
        if status.event <= status.decided:  # nothing has happened since then
            continue
        copy.status[0] = batch.status[row]
        copy.status[0].place = 0
        again = episode_of(machine, jobs, copy, ZERO).site
        copy_run(own.run, again.run)
        if order.kind == CHANCE:
            key = np.uint64(uniforms[i] * 2.0**53)
            for job in range(status.num_jobs):
                order.score[status.first + job] = uniform(key, job)
        else:
            rewind(again)
        rank(batch.site.layout, batch.site.work, again.run, order, now)
        bounded = order.max_wait > 0 and move_overdue(batch.site.work, again.run, order, now)
        start_jobs(batch.site.layout, batch.site.work, again.run, order, bounded, now)
        # The first of these that has not started yet, and can be named.
        open_pass(own)
        seen = min(machine.options[0].queue, status.waiting)
        for k in range(again.run.status[0].begun):
            place = np.int64(0)
            while place < seen and own.run.queue[place] != again.run.begun[k]:
                place += 1
            if place < seen and may_start(own, place, FALSE):
                actions[i] = place
                break
