"""What `cluster_env.worlds.hpc.decisions` asks of a site: who may start now, and starts one by one.

The queue that a policy sees is that of ``fcfs``: overdue jobs, then tiers, then the time of entry.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import FALSE, TRUE, njit_called, njit_inlined
from cluster_env.core.jobs import LARGEST
from cluster_env.worlds.hpc.events import NEVER, Episode, is_overdue_at
from cluster_env.worlds.hpc.site.bookings import book, find
from cluster_env.worlds.hpc.site.passes import (
    begin_pass,
    may_fit,
    within_limits,
    within_limits_of_nodes,
)
from cluster_env.worlds.hpc.site_arrays import (
    BACKFILLS,
    LIMIT_ROOM,
    MAY_START,
    PARTITION_FREE,
    PARTITION_PROCESSORS,
)
from cluster_env.worlds.hpc.site_holding import count_free


@njit_called
def _find(episode: Episode, job: int, seconds: int, at_once: bool) -> int:
    """The earliest time from which a job fits; see `bookings.find`."""
    return int(find(episode, job, seconds, episode.status[0].time, at_once))


@njit_called
def may_start(episode: Episode, place: int, bounded: bool) -> bool:
    """Whether the job at a place of the queue may start now beside all that is booked.

    Its nodes are those that it takes if it starts.
    """
    status, room, job = episode.status[0], episode.site.room, np.int64(episode.queue[place])
    record = episode.jobs[job]
    seconds = np.int64(record.limit if bounded else record.order_estimate)
    if not may_fit(episode, job, seconds) or not within_limits(episode, job):
        return False
    if _find(episode, job, seconds, TRUE) != status.time:
        room.too_long[record.form], room.too_long_pass[record.form] = seconds, status.settled
        return False
    return bool(within_limits_of_nodes(episode, job))


@njit_called
def _book_at(episode: Episode, place: int, bounded: bool) -> int:
    """Books the job at a place for when it may start, and returns this time.

    It books nothing for one that may start now, that a limit blocks, or for which no time is
    foreseen; the time is `NEVER` for these two.
    """
    now, job = episode.status[0].time, np.int64(episode.queue[place])
    record = episode.jobs[job]
    seconds = np.int64(record.limit if bounded else record.order_estimate)
    if not within_limits(episode, job):
        return int(np.int64(NEVER))
    time = np.int64(_find(episode, job, seconds, FALSE))
    if time == now and not within_limits_of_nodes(episode, job):
        return int(np.int64(NEVER))
    if now < time < NEVER:
        book(episode, job, time, time + seconds)
    return int(time)


@njit_called
def book_overdue(episode: Episode, place: int, now: int) -> int:
    """Books overdue jobs, see `cluster_env.worlds.hpc.reservations.book_overdue`."""
    starts = False
    while not starts and is_overdue_at(episode, place, now):
        starts = _book_at(episode, place, TRUE) == now and may_start(episode, place, TRUE)
        place += 0 if starts else 1
    return int(place)


@njit_called
def show_jobs(episode: Episode, out: NDArray[np.int32], size: int, last: int) -> tuple[int, int]:
    """Writes what a state shows of jobs at a site alone, see `SITE_JOB`.

    ``out`` begins with that of the first job, jobs are ``size`` numbers apart, and those up to
    ``last`` are seen. Units that are free on all nodes go to `Episode.free`. Returns in how many
    seconds the first job is expected to start, and what is spare beside it then.
    """
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    count_free(episode)
    begin_pass(episode, FALSE, status.time)
    for k in range(last):  # who may start, and in what partition
        place, shown = status.head + k, k * size
        job = np.int64(episode.queue[place])
        own = layout.partition_set[episode.jobs[job].partition]
        out[shown + MAY_START] = may_start(episode, place, FALSE)
        out[shown + PARTITION_FREE] = site.set_free[own, 0]
        out[shown + PARTITION_PROCESSORS] = layout.set_units[own, 0]
        out[shown + LIMIT_ROOM] = _room(episode, job)
    # The first job of each partition is booked, if only room keeps it from starting now.
    begin_pass(episode, FALSE, status.time)
    reservation, spare = np.int64(0), np.int64(0)
    for k in range(last):
        place = status.head + k
        job = np.int64(episode.queue[place])
        part = site.partitions[episode.jobs[job].partition]
        if k > 0 and part.blocked == status.stamp:
            continue
        time = np.int64(_book_at(episode, place, FALSE))
        if time < NEVER:
            part.blocked = status.stamp
        if k == 0:
            reservation = min(time - status.time, np.int64(LARGEST))
            which = episode.jobs[job].set
            free = site.set_free[which, 0]
            if 0 < reservation < LARGEST:
                free = np.int64(0)
                for spot in range(layout.set_first[which], layout.set_first[which + 1]):
                    free += site.room.future[layout.set_nodes[spot], 0]
            spare = max(free - episode.demand[job, 0], np.int64(0))
    for k in range(last):
        shown = k * size
        starts = out[shown + MAY_START] > 0 and may_start(episode, status.head + k, FALSE)
        out[shown + BACKFILLS] = starts
    return int(reservation), int(spare)


@njit_inlined
def _room(episode: Episode, job: int) -> int:
    """How many jobs that count as much the limits of a job, but those of nodes, let start now."""
    work, used, room = episode.site.work, episode.site.used, np.int64(LARGEST)
    for k in range(work.charge_first[job], work.charge_first[job + 1]):
        counter, amount = work.charge_counter[k], work.charge_amount[k]
        if work.charge_checked[k] and amount > 0 and work.counter_row[counter] < 0:
            room = min(room, max(work.counter_limit[counter] - used[counter], 0) // amount)
    return int(room)
