"""Scorers in a pool: the job with the lowest score starts, and then all are scored anew.

Since any start may change all scores, the queue is not sorted. An event costs as much as the jobs
that are scored at it: none if the narrowest waiting job does not fit, those that fit in the modes
that skip, and all that wait where the first of them counts.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import Episode, fits, is_overdue_at
from cluster_env.worlds.hpc.jobs import NOBODY
from cluster_env.worlds.hpc.plan import book, has_room
from cluster_env.worlds.hpc.reservations import (
    book_overdue,
    delays_nobody,
    reserve,
    start_in_pool,
    take_spare,
)
from cluster_env.worlds.hpc.rules import SKIP, STRICT
from cluster_env.worlds.hpc.seen import Factors, look_at, score_job

_WIDEST = 2**31 - 1


@njit_inlined
def start_best(episode: Episode, bounded: bool, now: int) -> bool:
    """Starts the next job of an instant; False if the rest waits or none may start.

    With ``bounded`` some jobs are overdue. They go first, and the others stand behind those that
    cannot start.
    """
    status, mode, plan = episode.status[0], episode.order.rule.mode, episode.plan
    # Nothing starts where the narrowest does not fit, whatever the scores are.
    while status.tail > status.head and episode.free[0] >= status.narrowest:
        if bounded:
            place = np.int64(book_overdue(episode, status.head + status.passed, now))
            status.passed = place - status.head
            if is_overdue_at(episode, place, now):
                start_in_pool(episode, place, now)
                return True
        place = np.int64(_best(episode, bounded, now))
        if place == NOBODY:
            break
        job = np.int64(episode.queue[place])
        demand, seconds = episode.demand[job], np.int64(episode.jobs[job].limit)
        first = mode != SKIP and status.blocked == NOBODY
        starts = not first or fits(episode.demand, job, episode.free)
        if bounded and starts:
            starts = has_room(plan, demand, seconds, now)
        if not starts and mode == STRICT:
            break
        if bounded:
            book(plan, demand, seconds)
        if not starts:
            # The first job gets a reservation; only what does not delay it may start from here on.
            if not bounded:
                status.shadow = np.int64(reserve(episode, job, now))
            status.blocked = job
            continue
        if status.blocked != NOBODY and not bounded:
            take_spare(episode, job, now, status.shadow)
        start_in_pool(episode, place, now)
        return True
    return False


@njit_inlined
def _best(episode: Episode, bounded: bool, now: int) -> int:
    """Place of the job with the lowest score among those looked at; -1 if none may start."""
    status, free, factors = episode.status[0], episode.free[0], _factors(episode, now)
    every = episode.order.rule.mode != SKIP and status.blocked == NOBODY
    share, blocked = 1.0 / max(float(free), 1.0), status.blocked
    best, lowest, narrowest = np.int64(NOBODY), np.inf, np.int64(_WIDEST)
    first = status.head + status.passed  # those before have their reservations
    for place in range(status.head, first):
        narrowest = min(narrowest, np.int64(episode.widths[place]))
    for place in range(first, status.tail):
        width = np.int64(episode.widths[place])
        narrowest = min(narrowest, width)
        if not every and width > free:
            continue
        # Those that fit, and do not delay the one with the reservation.
        job = np.int64(episode.queue[place])
        if not every:
            if job == blocked or not fits(episode.demand, job, episode.free):
                continue
            if bounded:
                seconds = np.int64(episode.jobs[job].limit)
                if not has_room(episode.plan, episode.demand[job], seconds, now):
                    continue
            elif blocked != NOBODY and not delays_nobody(episode, job, now, status.shadow):
                continue
        lasting = episode.jobs[job].order_estimate + now - episode.jobs[job].arrival
        score = score_job(
            factors,
            episode.jobs[job].log,
            episode.jobs[job].log_size,
            float(width),
            float(lasting),
            share,
        )
        if factors.fits != 0.0 and (not every or fits(episode.demand, job, episode.free)):
            score += factors.fits
        # Equal scores go by arrival; the queue may have another order.
        if score < lowest or (score == lowest and job < episode.queue[best]):
            best, lowest = np.int64(place), score
    status.narrowest = narrowest
    return int(best)


@njit_inlined
def _factors(episode: Episode, now: int) -> Factors:
    """What counts of a job in the present situation."""
    status, next_end = episode.status[0], 0.0
    waiting, running = status.tail - status.head + status.behind, np.int64(status.running)
    if running > 0:
        next_end = float(max(episode.expected[running - 1] - now, 0))
    free, processors = float(episode.free[0]), float(episode.capacity[0])
    scoring, sums = episode.order.scoring, episode.sums[0]
    return look_at(scoring, sums, now, free, processors, waiting, running, next_end)
