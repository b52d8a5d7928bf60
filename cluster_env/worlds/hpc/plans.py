"""Conservative backfilling: every waiting job has a reservation that delays none before it.

The plan is the one that is made anew from the estimates at each event, in the order of the queue
(Mu'alem and Feitelson, 2001). As long as all goes as planned, a plan made anew is the old one: jobs
that come go behind the others, and those that run end just when they are expected to. Then only
jobs that have just come are planned. In all other cases the plan is made anew as far as jobs stand
in the queue that are narrow enough to start now.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.passes import (
    GONE,
    HEAD,
    RUNNING,
    TAIL,
    Episode,
    Plan,
    begin,
    close_gaps,
)

SOUND, FIRST, SIZE, NEXT = range(4)
"""Places of a plan's state: whether all waiting jobs are planned and nothing went otherwise; the
first time that is not over; how many times there are, with those that are over; next start."""

_NEVER = 2**62


@njit_inlined
def plan_starts(it: Episode, now: int, num_new: int, first_new: int) -> None:
    """Gives waiting jobs the earliest room that delays none before them; what begins now starts.

    Args:
        it: the episode; its plan is sound if nothing has gone otherwise than planned.
        now: the clock.
        num_new: how many jobs have just come.
        first_new: the first of them.
    """
    head, tail, state = it.sizes[HEAD], it.sizes[TAIL], it.plan.state
    for place in range(tail - num_new, tail):
        if it.queue[place] < first_new:  # a new job stands before an old one
            state[SOUND] = 0
    sound = state[SOUND] == 1
    if sound:
        _pass_time(it.plan, now)
        if state[NEXT] == now:
            _start_planned(it, now, tail - num_new)
        head, tail = it.sizes[HEAD], it.sizes[TAIL]
        place = tail - num_new
    else:
        _plan_running(it, now)
        _find_narrowest(it)
        place = head
    first_gap, last_gap, gaps = tail, tail, np.int64(0)
    while place < tail and (sound or it.plan.narrowest[place] <= it.free[0]):
        job = it.queue[place]
        start = _book(it.plan, it.demand[job], it.order_estimate[job])
        it.plan.start[job] = start
        if start == now:
            begin(it, job, now, True)
            it.queue[place] = GONE
            first_gap, last_gap, gaps = min(first_gap, place), place, gaps + 1
        else:
            state[NEXT] = min(state[NEXT], start)
        place += 1
    state[SOUND] = np.int64(place == tail)
    if gaps > 0:
        close_gaps(it, first_gap, last_gap, gaps)


@njit_inlined
def begin_plan(plan: Plan, capacity: NDArray[np.int64]) -> None:
    """A plan of an empty machine, on which nobody waits."""
    plan.state[SOUND], plan.state[FIRST], plan.state[SIZE], plan.state[NEXT] = 1, 0, 1, _NEVER
    plan.times[0] = 0
    for wide in range(plan.reach.size):
        plan.reach[wide] = 0
    for r in range(capacity.size):
        plan.free[0, r] = capacity[r]


@njit_inlined
def _pass_time(plan: Plan, now: int) -> None:
    """Lets what is over be forgotten."""
    first = plan.state[FIRST]
    while first + 1 < plan.state[SIZE] and plan.times[first + 1] <= now:
        first += 1
    plan.times[first] = now
    plan.state[FIRST] = first


@njit_inlined
def _start_planned(it: Episode, now: int, end: int) -> None:
    """Starts the jobs before the place `end` whose time has come; their room is booked."""
    next_start = np.int64(_NEVER)
    first_gap, last_gap, gaps = it.sizes[TAIL], it.sizes[TAIL], np.int64(0)
    for place in range(it.sizes[HEAD], end):
        job = it.queue[place]
        if it.plan.start[job] == now:
            begin(it, job, now, True)
            it.queue[place] = GONE
            first_gap, last_gap, gaps = min(first_gap, place), place, gaps + 1
        else:
            next_start = min(next_start, it.plan.start[job])
    it.plan.state[NEXT] = next_start
    if gaps > 0:
        close_gaps(it, first_gap, last_gap, gaps)


@njit_inlined
def _plan_running(it: Episode, now: int) -> None:
    """A new plan with what runs alone."""
    times, free, size = it.plan.times, it.plan.free, 1
    times[0] = now
    for r in range(it.free.size):
        free[0, r] = it.free[r]
    for k in range(it.sizes[RUNNING] - 1, -1, -1):
        at, job = max(it.expected[k], now + 1), it.expected_jobs[k]
        if times[size - 1] < at:
            times[size] = at
            for r in range(it.free.size):
                free[size, r] = free[size - 1, r]
            size += 1
        for r in range(it.free.size):
            free[size - 1, r] += it.demand[job, r]
    state = it.plan.state
    state[FIRST], state[SIZE], state[NEXT] = 0, size, _NEVER
    for wide in range(it.plan.reach.size):
        it.plan.reach[wide] = 0


@njit_inlined
def _find_narrowest(it: Episode) -> None:
    narrowest = np.int32(2**31 - 1)
    for place in range(it.sizes[TAIL] - 1, it.sizes[HEAD] - 1, -1):
        narrowest = min(narrowest, it.widths[place])
        it.plan.narrowest[place] = narrowest


@njit_inlined
def _book(plan: Plan, demand: NDArray[np.int32], estimate: int) -> int:
    """Takes the earliest room of a job out of a plan, and returns its start."""
    times, free = plan.times, plan.free
    size, wide = plan.state[SIZE], 0
    while (2 << wide) <= demand[0]:
        wide += 1
    # Free processors only become fewer while jobs are booked, so nobody looks there twice.
    at = max(plan.reach[wide], plan.state[FIRST])
    while free[at, 0] < (1 << wide):
        at += 1
    plan.reach[wide] = at
    k = at
    while k < size and times[k] < times[at] + estimate:
        for r in range(demand.size):
            if free[k, r] < demand[r]:
                at = k + 1
                break
        k += 1
    start, over, last = times[at], times[at] + estimate, k
    if last == size or times[last] > over:
        for k in range(size, last, -1):
            times[k] = times[k - 1]
            for r in range(demand.size):
                free[k, r] = free[k - 1, r]
        times[last] = over
        for r in range(demand.size):
            free[last, r] = free[last - 1, r]
        plan.state[SIZE] = size + 1
        for wide in range(plan.reach.size):
            plan.reach[wide] += plan.reach[wide] >= last
    for k in range(at, last):
        for r in range(demand.size):
            free[k, r] -= demand[r]
    return int(start)
