"""Whole episodes under a rule, without a decision that leaves compiled code.

At one instant jobs finish, then jobs arrive, then the rule starts jobs. An event costs as much as
the rule has to look at, whatever the number of processors: nothing here loops over processors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import Jobs, fits, forget, pop, raise_outlived
from cluster_env.worlds.hpc.orders import FIXED
from cluster_env.worlds.hpc.passes import (
    HEAD,
    RUNNING,
    SMALLEST,
    TAIL,
    Episode,
    Plan,
    begin,
    enqueue,
    may_start,
    rank,
    start_fitting,
    start_in_order,
)
from cluster_env.worlds.hpc.plans import SOUND, begin_plan, plan_starts
from cluster_env.worlds.hpc.rules import Compiled

STRICT, SKIP, EASY, CONSERVATIVE = range(4)
HALF_LIFE_S = 7 * 24 * 3600
"""Seconds in which what a user has used fades by half, for fair shares."""

_NEVER = 2**62
_UNKNOWN = -1  # the reservation of the first job has to be worked out anew


class Room(NamedTuple):
    """What an episode is played in; one serves all, one after the other."""

    free: NDArray[np.int64]  # (num_resources,)
    spare: NDArray[np.int64]  # (num_resources,)
    usage: NDArray[np.float64]  # (num_users,)
    queue: NDArray[np.int32]  # (num_jobs + 1,), of the longest jobset, as the next six
    keys: NDArray[np.float64]
    widths: NDArray[np.int32]
    ends: NDArray[np.int64]
    running: NDArray[np.int32]
    expected: NDArray[np.int64]
    expected_jobs: NDArray[np.int32]
    sizes: NDArray[np.int64]  # (4,)
    plan: Plan  # its times with room for two of each job, where plans are made


def make_room(num_jobs: int, num_resources: int, num_users: int, plans: bool) -> Room:
    """Room for episodes.

    Args:
        num_jobs: of the longest jobset.
        num_resources: of the machine.
        num_users: largest number of a user, and one more.
        plans: whether all waiting jobs get reservations.
    """
    n = num_jobs + 1  # so that a look behind the last is allowed
    planned = n if plans else 0
    return Room(
        free=np.empty(num_resources, np.int64),
        spare=np.empty(num_resources, np.int64),
        usage=np.empty(num_users, np.float64),
        queue=np.empty(n, np.int32),
        keys=np.empty(n, np.float64),
        widths=np.empty(n, np.int32),
        ends=np.empty(n, np.int64),
        running=np.empty(n, np.int32),
        expected=np.empty(n, np.int64),
        expected_jobs=np.empty(n, np.int32),
        sizes=np.empty(4, np.int64),
        plan=Plan(
            np.zeros(4, np.int64),
            np.empty(planned, np.int64),
            np.empty(planned, np.int32),
            np.empty(2 * planned, np.int64),
            np.empty((2 * planned, num_resources), np.int64),
            np.zeros(32, np.int64),
        ),
    )


@njit_kernel
def play_all(
    jobs: Jobs,
    jobset: NDArray[np.int32],
    capacity: NDArray[np.int64],
    rule: Compiled,
    max_time: int,
    room: Room,
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
        room: where they are played.
        start: written, one episode's jobs after the other's; -1 for those that never start.
        place: int64 ``(num_episodes,)``, where the jobs of each episode begin in ``start``.
        end: written, int64 ``(num_episodes,)``: the clock at the end.
        truncated: written, bool ``(num_episodes,)``: which episodes were cut.
    """
    for e in range(jobset.size):
        first, last = jobs.first[jobset[e]], jobs.first[jobset[e] + 1]
        own = start[place[e] : place[e] + last - first]
        it = begin_episode(jobs, first, last, capacity, rule, room, own)
        end[e] = _play(it, rule, max_time)
        truncated[e] = end[e] > max_time
        end[e] = min(end[e], max_time)


@njit_inlined
def begin_episode(
    jobs: Jobs,
    first: int,
    last: int,
    capacity: NDArray[np.int64],
    rule: Compiled,
    room: Room,
    start: NDArray[np.int64],
) -> Episode:
    """An episode with nothing started yet, in a room that may have served another."""
    num_users = 0
    for job in range(first, last):
        num_users = max(num_users, rule.user[job] + 1)
    for user in range(num_users):
        room.usage[user] = 0.0
    for job in range(last - first):
        start[job] = -1
    for r in range(capacity.size):
        room.free[r] = capacity[r]
    for k in range(room.sizes.size):
        room.sizes[k] = 0
    room.sizes[SMALLEST] = _NEVER
    if room.plan.times.size > 0:
        begin_plan(room.plan, capacity)
    return Episode(
        jobs.arrival[first:last],
        jobs.duration[first:last],
        jobs.order_estimate[first:last],
        jobs.estimate[first:last],
        jobs.limit[first:last],
        jobs.demand[first:last],
        rule.score[first:last],
        rule.left_free[first:last],
        rule.user[first:last],
        capacity,
        room.free,
        room.spare,
        rule.weights,
        room.usage[:num_users],
        start,
        room.queue,
        room.keys,
        room.widths,
        room.ends,
        room.running,
        room.expected,
        room.expected_jobs,
        room.sizes,
        room.plan,
    )


@njit_inlined
def _play(it: Episode, rule: Compiled, max_time: int) -> int:
    """Plays an episode; returns the clock at its end, above `max_time` if it has to be cut."""
    num_jobs = it.arrival.size
    # A literal 0 would be a type of its own, and each part be compiled for it, too.
    now, coming, shadow = int(np.int64(0)), int(np.int64(0)), int(np.int64(_UNKNOWN))
    mode, fixed = rule.mode, rule.kind == FIXED
    settled = fixed and (mode < EASY or _agree(it))
    while coming < num_jobs or it.sizes[RUNNING] > 0:
        before = now
        now = int(it.arrival[coming]) if coming < num_jobs else _NEVER
        if it.sizes[RUNNING] > 0:
            now = min(now, it.ends[0])
        if now > max_time:
            break
        changed = _finish(it, now, now - before, mode >= EASY, fixed)
        if mode >= EASY and it.sizes[RUNNING] > 0 and it.expected[it.sizes[RUNNING] - 1] <= now:
            raised = raise_outlived(
                it.expected,
                it.expected_jobs,
                it.sizes[RUNNING],
                now,
                it.start,
                it.limit,
                it.demand,
            )
            changed = changed or raised > 0
            it.plan.state[SOUND] = 0
        first_new = coming
        while coming < num_jobs and it.arrival[coming] == now:
            coming += 1
        waiting = it.sizes[TAIL] > it.sizes[HEAD]
        alone = settled and waiting and not changed and coming - first_new == 1
        if alone and _behind(it, first_new, mode, shadow, now):
            if _joins(it, first_new, mode, shadow, now):
                begin(it, first_new, now, mode >= EASY)
            else:
                enqueue(it, first_new)
            continue
        for job in range(first_new, coming):
            enqueue(it, job)
        shadow = _UNKNOWN
        if it.sizes[TAIL] == it.sizes[HEAD] or (
            it.free[0] < it.sizes[SMALLEST] and mode != CONSERVATIVE
        ):
            continue
        if not fixed:
            rank(it, rule.kind, now)
        if mode == CONSERVATIVE:
            if not settled:
                it.plan.state[SOUND] = 0
            plan_starts(it, now, coming - first_new, first_new)
            continue
        if mode != SKIP:
            start_in_order(it, now, mode == EASY)
        if mode == SKIP or (mode == EASY and it.sizes[TAIL] > it.sizes[HEAD]):
            shadow = start_fitting(it, now, mode == EASY)
    return now


@njit_inlined
def _agree(it: Episode) -> bool:
    """Whether what is believed of a job stays the same when it starts.

    Else what is spare beside a reservation is more, or less, once a job that took of it runs.
    """
    job = np.int64(0)
    while job < it.estimate.size and it.order_estimate[job] == it.estimate[job]:
        job += 1
    return bool(job == it.estimate.size)


@njit_inlined
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
            planned = forget(it.expected, it.expected_jobs, it.sizes[RUNNING], job)
            if planned != now:
                it.plan.state[SOUND] = 0
        it.sizes[RUNNING] -= 1
        for r in range(it.free.size):
            it.free[r] += it.demand[job, r]
        if not fixed:
            it.usage[it.user[job]] += float(it.duration[job]) * it.demand[job, 0]
    return True


@njit_inlined
def _behind(it: Episode, job: int, mode: int, shadow: int, now: int) -> bool:
    """Whether a job that arrives alone changes nothing for those that wait already.

    None of them could start before it, and nothing has become free. So it is enough to look at the
    new job, unless it goes to the head, or reservations move because a job outlives its estimate.
    """
    if mode == SKIP:
        return True
    if mode == CONSERVATIVE or it.score[job] < it.keys[it.sizes[HEAD]]:
        return False
    return mode == STRICT or (shadow != _UNKNOWN and it.expected[it.sizes[RUNNING] - 1] > now)


@njit_inlined
def _joins(it: Episode, job: int, mode: int, shadow: int, now: int) -> bool:
    """Whether such a job may start at once."""
    if mode == STRICT or not fits(it.demand, job, it.free):
        return False
    return may_start(it, job, now, shadow, mode == EASY)
