"""Whole episodes under a rule, without a decision that leaves compiled code.

At one instant jobs finish, then jobs arrive, then the rule starts jobs. An event costs as much as
the rule has to look at, whatever the number of processors: nothing here loops over processors.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.hpc.events import Jobs, fits, forget, pop, raise_outlived
from cluster_env.worlds.hpc.orders import FIXED
from cluster_env.worlds.hpc.passes import (
    HEAD,
    RUNNING,
    SMALLEST,
    TAIL,
    Episode,
    backfill,
    begin,
    enqueue,
    plan_all,
    rank,
    start_fitting,
    start_in_order,
)
from cluster_env.worlds.hpc.rules import Compiled

STRICT, SKIP, EASY, CONSERVATIVE = range(4)
HALF_LIFE_S = 7 * 24 * 3600
"""Seconds in which what a user has used fades by half, for fair shares."""

_NEVER = 2**62
_UNKNOWN = -1  # the reservation of the first job has to be worked out anew


@njit(cache=True, nogil=True)
def play_all(
    jobs: Jobs,
    jobset: NDArray[np.int32],
    capacity: NDArray[np.int64],
    rule: Compiled,
    max_time: int,
    start: NDArray[np.int64],
    place: NDArray[np.int64],
    end: NDArray[np.int64],
    truncated: NDArray[np.bool_],
) -> None:
    """Plays one episode after the other.

    Args:
        jobs: of all jobsets.
        jobset: int32 ``(num_episodes,)``, which each episode runs.
        capacity: units of each resource.
        rule: what decides.
        max_time: clock at which episodes are cut.
        start: written, one episode's jobs after the other's; -1 for those that never start.
        place: int64 ``(num_episodes,)``, where the jobs of each episode begin in ``start``.
        end: written, int64 ``(num_episodes,)``: the clock at the end.
        truncated: written, bool ``(num_episodes,)``: which episodes were cut.
    """
    for e in range(jobset.size):
        first, last = jobs.first[jobset[e]], jobs.first[jobset[e] + 1]
        own = start[place[e] : place[e] + last - first]
        end[e] = _play(_begin_episode(jobs, first, last, capacity, rule, own), rule, max_time)
        truncated[e] = end[e] > max_time
        end[e] = min(end[e], max_time)


@njit(cache=True, nogil=True)
def _begin_episode(
    jobs: Jobs,
    first: int,
    last: int,
    capacity: NDArray[np.int64],
    rule: Compiled,
    start: NDArray[np.int64],
) -> Episode:
    n = last - first + 1  # one more, so that a look behind the last is allowed
    user = rule.user[first:last]
    start[:] = -1
    sizes = np.zeros(4, np.int64)
    sizes[SMALLEST] = _NEVER
    return Episode(
        jobs.arrival[first:last],
        jobs.duration[first:last],
        jobs.order_estimate[first:last],
        jobs.estimate[first:last],
        jobs.limit[first:last],
        jobs.demand[first:last],
        rule.score[first:last],
        rule.left_free[first:last],
        user,
        capacity,
        capacity.copy(),
        capacity.copy(),
        rule.weights,
        np.zeros(user.max() + 1 if user.size else 1, np.float64),
        start,
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.float64),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        sizes,
    )


@njit(cache=True, nogil=True)
def _play(it: Episode, rule: Compiled, max_time: int) -> int:
    """Plays an episode; returns the clock at its end, above `max_time` if it has to be cut."""
    num_jobs = it.arrival.size
    now, coming, shadow = 0, 0, _UNKNOWN
    mode, fixed = rule.mode, rule.kind == FIXED
    while coming < num_jobs or it.sizes[RUNNING] > 0:
        before = now
        now = int(it.arrival[coming]) if coming < num_jobs else _NEVER
        if it.sizes[RUNNING] > 0:
            now = min(now, it.ends[0])
        if now > max_time:
            break
        changed = _finish(it, now, now - before, mode >= EASY, fixed)
        if mode >= EASY and it.sizes[RUNNING] > 0 and it.expected[0] <= now:
            changed |= raise_outlived(
                it.expected,
                it.expected_jobs,
                it.sizes[RUNNING],
                now,
                it.start,
                it.limit,
                it.planned,
            )
        first_new = coming
        while coming < num_jobs and it.arrival[coming] == now:
            coming += 1
        waiting = it.sizes[TAIL] > it.sizes[HEAD]
        alone = fixed and waiting and not changed and coming - first_new == 1
        if alone and _behind(it, first_new, mode, shadow, now):
            if _joins(it, first_new, mode, shadow, now):
                begin(it, first_new, now, mode >= EASY)
            else:
                enqueue(it, first_new)
            continue
        for job in range(first_new, coming):
            enqueue(it, job)
        shadow = _UNKNOWN
        if it.sizes[TAIL] == it.sizes[HEAD] or it.free[0] < it.sizes[SMALLEST]:
            continue
        if not fixed:
            rank(it, rule.kind, now)
        if mode == SKIP:
            start_fitting(it, now)
        elif mode == CONSERVATIVE:
            plan_all(it, now)
        else:
            start_in_order(it, now, mode >= EASY)
            if mode == EASY and it.sizes[TAIL] > it.sizes[HEAD]:
                shadow = backfill(it, now)
    return now


@njit(cache=True, nogil=True)
def _finish(it: Episode, now: int, passed: int, track: bool, fixed: bool) -> bool:
    """Lets the jobs finish whose time it is; returns whether there were any."""
    if it.sizes[RUNNING] == 0 or it.ends[0] > now:
        return False
    if not fixed and it.usage.size > 1:
        faded = 0.5 ** (passed / HALF_LIFE_S)
        for user in range(it.usage.size):
            it.usage[user] *= faded
    while it.sizes[RUNNING] > 0 and it.ends[0] == now:
        job = pop(it.ends, it.running, it.sizes[RUNNING])
        if track:
            forget(it.expected, it.expected_jobs, it.sizes[RUNNING], it.planned[job], job)
        it.sizes[RUNNING] -= 1
        for r in range(it.free.size):
            it.free[r] += it.demand[job, r]
        if not fixed:
            it.usage[it.user[job]] += float(it.duration[job]) * it.demand[job, 0]
    return True


@njit(cache=True, nogil=True)
def _behind(it: Episode, job: int, mode: int, shadow: int, now: int) -> bool:
    """Whether a job that arrives alone changes nothing for those that wait already.

    None of them could start before it, and nothing has become free. So it is enough to look at the
    new job, unless it goes to the head, or reservations move because a job outlives its estimate.
    """
    if mode == SKIP:
        return True
    if mode == CONSERVATIVE or it.score[job] < it.keys[it.sizes[HEAD]]:
        return False
    return mode == STRICT or (shadow != _UNKNOWN and it.expected[0] > now)


@njit(cache=True, nogil=True)
def _joins(it: Episode, job: int, mode: int, shadow: int, now: int) -> bool:
    """Whether such a job may start at once."""
    if mode == STRICT or not fits(it.demand, job, it.free):
        return False
    if mode == SKIP:
        return bool(it.demand[job, 0] + it.left_free[job] <= it.free[0])
    if now + it.estimate[job] <= shadow:
        return True
    if not fits(it.demand, job, it.spare):
        return False
    for r in range(it.spare.size):
        it.spare[r] -= it.demand[job, r]
    return True
