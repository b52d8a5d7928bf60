"""What `cluster_env.worlds.hpc.decisions` asks of a site: who may start now, and starts one by one.

The queue that a policy sees is that of ``fcfs``: overdue jobs, then tiers, then the time of entry.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import (
    FALSE,
    TRUE,
    njit_called,
    njit_inlined,
    njit_kernel,
    reference,
)
from cluster_env.core.jobs import LARGEST
from cluster_env.core.seeding import uniform
from cluster_env.worlds.hpc.episodes import Rows, copy_of, episode_of
from cluster_env.worlds.hpc.events import NEVER, Episode, Machine, expect_started, is_overdue_at
from cluster_env.worlds.hpc.jobs import Jobs
from cluster_env.worlds.hpc.plan import Plan
from cluster_env.worlds.hpc.queue import leave, move_overdue_at_site, rank
from cluster_env.worlds.hpc.rules import CHANCE
from cluster_env.worlds.hpc.site.bookings import book, find
from cluster_env.worlds.hpc.site.copying import copy_episode, rewind_site
from cluster_env.worlds.hpc.site.events import advance_site, count_free, next_at_site
from cluster_env.worlds.hpc.site.passes import (
    begin_pass,
    may_fit,
    start,
    start_jobs,
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


@njit_called
def advance_and_order(episode: Episode) -> None:
    """Lets all happen that happens now, if anything does; overdue jobs go first."""
    status, max_wait = episode.status[0], episode.site.order.rule.max_wait
    if next_at_site(episode) <= status.time:
        status.event = status.time
        advance_site(episode, status.time)
    if max_wait > 0:
        move_overdue_at_site(episode, status.time, max_wait)


@njit_called
def _find(episode: Episode, job: int, seconds: int, at_once: bool) -> int:
    """The earliest time from which a job fits; see `bookings.find`."""
    return int(find(episode, job, seconds, episode.status[0].time, at_once))


@njit_called
def may_start(episode: Episode, place: int, bounded: bool) -> bool:
    """Whether the job at a place of the queue may start now beside all that is booked.

    Its nodes are those that `start_at` takes.
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
def place_of(machine: Machine, episode: Episode, plan: Plan, action: int) -> int:
    """Place in the queue of the job that an action starts, -1 for none; see `decisions._place`.

    Overdue jobs go first, and are booked where they cannot start; the plan is not needed here.
    """
    status, max_wait = episode.status[0], episode.site.order.rule.max_wait
    place, now, starts = np.int64(status.head), status.time, False
    bounded = is_overdue_at(episode, place, now, max_wait)
    if bounded:
        expect_started(episode, now, TRUE)
    begin_pass(episode)
    while not starts and is_overdue_at(episode, place, now, max_wait):
        starts = _book_at(episode, place, TRUE) == now and may_start(episode, place, TRUE)
        place += 0 if starts else 1
    if not starts:
        chosen = status.head + action
        last = min(status.head + machine.options[0].queue, status.tail)
        starts = place <= chosen < last and may_start(episode, chosen, bounded)
        place = np.int64(chosen)
    if bounded:
        expect_started(episode, now, FALSE)
    return int(place if starts else np.int64(-1))


@njit_called
def first_that_fits(machine: Machine, episode: Episode) -> int:
    """Place of the first job that the policy sees and that may start; -1 if there is none.

    Where a job is overdue, all count for how long users have asked.
    """
    begin_pass(episode)
    status, place = episode.status[0], np.int64(episode.status[0].head)
    bounded = is_overdue_at(episode, place, status.time, episode.site.order.rule.max_wait)
    last = min(status.tail, place + machine.options[0].queue)
    while place < last and not may_start(episode, place, bounded):
        place += 1
    return int(place if place < last else np.int64(-1))


@njit_called
def start_at(episode: Episode, place: int) -> None:
    """Starts the job at a place of the queue on the nodes that `may_start` has just chosen."""
    job = np.int64(episode.queue[place])
    start(episode, job, episode.status[0].time, np.int64(episode.jobs[job].estimate))
    leave(episode, place)


@njit_called
def show_jobs(episode: Episode, out: NDArray[np.int32], size: int, last: int) -> tuple[int, int]:
    """Writes what a state shows of jobs at a site alone, see `SITE_JOB`.

    ``out`` begins with that of the first job, jobs are ``size`` numbers apart, and those up to
    ``last`` are seen. Units that are free on all nodes go to `Episode.free`. Returns in how many
    seconds the first job is expected to start, and what is spare beside it then.
    """
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    count_free(episode)
    begin_pass(episode)
    for k in range(last):  # who may start, and in what partition
        place, shown = status.head + k, k * size
        job = np.int64(episode.queue[place])
        own = layout.partition_set[episode.jobs[job].partition]
        out[shown + MAY_START] = may_start(episode, place, FALSE)
        out[shown + PARTITION_FREE] = site.set_free[own, 0]
        out[shown + PARTITION_PROCESSORS] = layout.set_units[own, 0]
        out[shown + LIMIT_ROOM] = _room(episode, job)
    # The first job of each partition is booked, if only room keeps it from starting now.
    begin_pass(episode)
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


@njit_kernel
def choose_at_site(
    machine: Machine,
    jobs: Jobs,
    rows: Rows,
    which: NDArray[np.int32],
    uniforms: NDArray[np.float64],
    copy: Rows,
    actions: NDArray[np.int32],
) -> None:
    """Chooses what a rule or scorer would start next in some rows, see `scheduler.choose_by_rule`.

    The instant is played from its beginning in ``copy``, a row whose order is that of the rule.
    """
    for i in range(which.size):
        row = np.int64(which[i])
        actions[i] = machine.options[0].queue
        own = reference(episode_of(machine, jobs, rows, row, rows, row))
        status, now = own.status[0], own.status[0].time
        if status.event <= status.decided:  # nothing has happened since then
            continue
        again = reference(copy_of(machine, jobs, rows, row, copy))
        rule = again.site.order.rule
        copy_episode(own, again)
        if rule.kind == CHANCE:
            key = np.uint64(uniforms[i] * 2.0**53)
            for job in range(rule.score.size):
                rule.score[job] = uniform(key, job)
        else:
            rewind_site(again)
        rank(again, rule, now)
        bounded = rule.max_wait > 0 and move_overdue_at_site(again, now, rule.max_wait)
        start_jobs(again, bounded, now)
        # The first of these that has not started yet, and can be named.
        begin_pass(own)
        last = min(status.tail, status.head + machine.options[0].queue)
        for k in range(again.status[0].begun):
            place = np.int64(status.head)
            while place < last and own.queue[place] != again.site.room.begun[k]:
                place += 1
            if place < last and may_start(own, place, FALSE):
                actions[i] = place - status.head
                break
