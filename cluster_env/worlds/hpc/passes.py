"""What one rule does at one instant: which of the waiting jobs start."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.hpc.events import expect, fits, push, reserve
from cluster_env.worlds.hpc.orders import PRIORITY, moving_score

HEAD, TAIL, RUNNING, SMALLEST = range(4)

_MOVES = 8  # of each job on average, from which sorting anew is quicker than by insertion


class Episode(NamedTuple):
    """One episode under way."""

    arrival: NDArray[np.int32]  # (num_jobs,), of the jobset
    duration: NDArray[np.int32]
    order_estimate: NDArray[np.int32]  # see `cluster_env.worlds.hpc.events.Jobs`
    estimate: NDArray[np.int32]
    limit: NDArray[np.int32]
    demand: NDArray[np.int32]  # (num_jobs, num_resources)
    score: NDArray[np.float64]  # of a fixed order
    left_free: NDArray[np.int64]
    user: NDArray[np.int32]
    capacity: NDArray[np.int64]  # (num_resources,)
    free: NDArray[np.int64]
    spare: NDArray[np.int64]  # beside the first waiting job at its reservation
    weights: NDArray[np.float64]
    usage: NDArray[np.float64]  # (num_users,), processor seconds that fade
    start: NDArray[np.int64]
    planned: NDArray[np.int64]  # when jobs that run are expected to end
    queue: NDArray[np.int32]  # waiting jobs in their order, from sizes[HEAD] to sizes[TAIL] - 1
    keys: NDArray[np.float64]  # their scores
    ends: NDArray[np.int64]  # heap of true ends
    running: NDArray[np.int32]
    expected: NDArray[np.int64]  # sorted expected ends
    expected_jobs: NDArray[np.int32]
    sizes: NDArray[np.int64]  # HEAD, TAIL, RUNNING; SMALLEST: no waiting job is narrower


@njit(cache=True, nogil=True)
def begin(it: Episode, job: int, now: int, track: bool) -> None:
    """Starts a job; `track` says whether expected ends are asked for."""
    it.start[job] = now
    for r in range(it.free.size):
        it.free[r] -= it.demand[job, r]
    count = it.sizes[RUNNING]
    push(it.ends, it.running, count, now + it.duration[job], job)
    if track:
        it.planned[job] = now + it.estimate[job]
        expect(it.expected, it.expected_jobs, count, it.planned[job], job)
    it.sizes[RUNNING] = count + 1


@njit(cache=True, nogil=True)
def enqueue(it: Episode, job: int) -> None:
    """Lets a job wait, behind all whose score is at most its own."""
    head, tail, key = it.sizes[HEAD], it.sizes[TAIL], it.score[job]
    queue, keys = it.queue, it.keys
    low, high = head, tail
    if tail > head and keys[tail - 1] <= key:
        low = tail
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] <= key:
            low = middle + 1
        else:
            high = middle
    if head > 0 and low - head < tail - low:  # the shorter part makes room
        for place in range(head - 1, low - 1):
            queue[place], keys[place] = queue[place + 1], keys[place + 1]
        low -= 1
        it.sizes[HEAD] = head - 1
    else:
        for place in range(tail, low, -1):
            queue[place], keys[place] = queue[place - 1], keys[place - 1]
        it.sizes[TAIL] = tail + 1
    queue[low], keys[low] = job, key
    it.sizes[SMALLEST] = min(it.sizes[SMALLEST], it.demand[job, 0])


@njit(cache=True, nogil=True)
def start_in_order(it: Episode, now: int, track: bool) -> None:
    """Starts jobs from the first on, as long as they fit."""
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    while head < tail and fits(it.demand, it.queue[head], it.free):
        begin(it, it.queue[head], now, track)
        head += 1
    it.sizes[HEAD] = head


@njit(cache=True, nogil=True)
def start_fitting(it: Episode, now: int) -> None:
    """Starts whatever fits, in order; long jobs must leave a reserve if the rule has one."""
    kept, smallest = it.sizes[HEAD], np.int64(2**62)
    place, tail = it.sizes[HEAD], it.sizes[TAIL]
    while place < tail:
        if it.free[0] < it.sizes[SMALLEST]:
            break
        job = it.queue[place]
        need = np.int64(it.demand[job, 0])
        room = need + it.left_free[job] <= it.free[0] or it.sizes[RUNNING] == 0
        if room and fits(it.demand, job, it.free):
            begin(it, job, now, False)
        else:
            smallest = min(smallest, need)
            it.queue[kept], it.keys[kept] = job, it.keys[place]
            kept += 1
        place += 1
    _close_gap(it, kept, place, smallest)


@njit(cache=True, nogil=True)
def backfill(it: Episode, now: int) -> int:
    """Starts what fits and does not delay the first job, which does not fit.

    Such a job ends, as expected, before the first one's reservation, or uses what is spare then.
    Returns the time of the reservation.
    """
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    first = it.queue[head]
    shadow = reserve(
        it.expected,
        it.expected_jobs,
        it.sizes[RUNNING],
        it.demand,
        first,
        now,
        it.free,
        it.spare,
    )
    kept, place, smallest = head + 1, head + 1, np.int64(it.demand[first, 0])
    while place < tail:
        if it.free[0] < it.sizes[SMALLEST]:
            break
        job = it.queue[place]
        starts = fits(it.demand, job, it.free)
        if starts and now + it.estimate[job] > shadow:
            starts = fits(it.demand, job, it.spare)
            if starts:
                for r in range(it.spare.size):
                    it.spare[r] -= it.demand[job, r]
        if starts:
            begin(it, job, now, True)
        else:
            smallest = min(smallest, it.demand[job, 0])
            it.queue[kept], it.keys[kept] = job, it.keys[place]
            kept += 1
        place += 1
    _close_gap(it, kept, place, smallest)
    return shadow


@njit(cache=True, nogil=True)
def _close_gap(it: Episode, kept: int, place: int, smallest: int) -> None:
    """Moves up what was not looked at, from `place` to behind what was kept."""
    tail = it.sizes[TAIL]
    if place == tail:
        it.sizes[SMALLEST] = smallest
    if kept < place:
        for k in range(place, tail):
            it.queue[kept], it.keys[kept] = it.queue[k], it.keys[k]
            kept += 1
        it.sizes[TAIL] = kept


@njit(cache=True, nogil=True)
def rank(it: Episode, kind: int, now: int) -> None:
    """Sorts the waiting jobs by what their moving scores are now."""
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    budget = _MOVES * (tail - head) + 64
    total = it.usage.sum()
    for place in range(head, tail):
        it.keys[place] = _score(it, kind, it.queue[place], now, total)
        job, key, hole = it.queue[place], it.keys[place], place
        while hole > head and (
            it.keys[hole - 1] > key or (it.keys[hole - 1] == key and it.queue[hole - 1] > job)
        ):
            it.queue[hole], it.keys[hole] = it.queue[hole - 1], it.keys[hole - 1]
            hole -= 1
        it.queue[hole], it.keys[hole] = job, key
        budget -= place - hole
        if budget < 0:
            break
    if budget >= 0:
        return
    for place in range(head, tail):
        it.keys[place] = _score(it, kind, it.queue[place], now, total)
    _sort(it.queue[head:tail], it.keys[head:tail])


@njit(cache=True, nogil=True)
def _sort(queue: NDArray[np.int32], keys: NDArray[np.float64]) -> None:
    """Sorts by key, equals by number, by a heap: numba's own sorts take seconds to compile."""
    for top in range(queue.size // 2 - 1, -1, -1):
        _sift(queue, keys, top, queue.size)
    for size in range(queue.size - 1, 0, -1):
        queue[0], queue[size] = queue[size], queue[0]
        keys[0], keys[size] = keys[size], keys[0]
        _sift(queue, keys, 0, size)


@njit(cache=True, nogil=True)
def _sift(queue: NDArray[np.int32], keys: NDArray[np.float64], top: int, size: int) -> None:
    job, key = queue[top], keys[top]
    while True:
        below = 2 * top + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            keys[other] > keys[below]
            or (keys[other] == keys[below] and queue[other] > queue[below])
        ):
            below = other
        if keys[below] < key or (keys[below] == key and queue[below] < job):
            break
        queue[top], keys[top] = queue[below], keys[below]
        top = below
    queue[top], keys[top] = job, key


@njit(cache=True, nogil=True)
def _score(it: Episode, kind: int, job: int, now: int, total: float) -> float:
    fair_share = 1.0
    if kind == PRIORITY and total > 0:
        fair_share = 2.0 ** (-it.usage[it.user[job]] / total * it.usage.size)
    waited = now - it.arrival[job]
    return moving_score(
        kind,
        waited,
        it.order_estimate[job],
        it.demand[job],
        it.free,
        it.capacity,
        it.weights,
        fair_share,
    )


@njit(cache=True, nogil=True)
def plan_all(it: Episode, now: int) -> None:
    """Gives every waiting job, in order, the earliest room that delays none before it.

    The plan is made anew from the estimates; what begins now starts.
    """
    head, tail, num_running = it.sizes[HEAD], it.sizes[TAIL], it.sizes[RUNNING]
    num_resources = it.free.size
    times = np.empty(num_running + 2 * (tail - head) + 2, np.int64)
    free = np.empty((times.size, num_resources), np.int64)
    times[0] = now
    for r in range(num_resources):
        free[0, r] = it.free[r]
    size = 1
    for k in range(num_running):
        at, job = max(it.expected[k], now + 1), it.expected_jobs[k]
        if times[size - 1] < at:
            times[size] = at
            for r in range(num_resources):
                free[size, r] = free[size - 1, r]
            size += 1
        for r in range(num_resources):
            free[size - 1, r] += it.demand[job, r]
    kept, place, smallest = head, head, np.int64(2**62)
    while place < tail:
        if it.free[0] < it.sizes[SMALLEST]:
            break
        job = it.queue[place]
        at = _earliest(times, free, size, it.demand[job], it.estimate[job])
        size = _book(times, free, size, at, it.demand[job], it.estimate[job])
        if at == 0:
            begin(it, job, now, True)
        else:
            smallest = min(smallest, it.demand[job, 0])
            it.queue[kept], it.keys[kept] = job, it.keys[place]
            kept += 1
        place += 1
    _close_gap(it, kept, place, smallest)


@njit(cache=True, nogil=True)
def _earliest(
    times: NDArray[np.int64],
    free: NDArray[np.int64],
    size: int,
    demand: NDArray[np.int32],
    estimate: int,
) -> int:
    """Index of the first time from which a job has room until it is over."""
    at, k = 0, 0
    while k < size and times[k] < times[at] + estimate:
        for r in range(demand.size):
            if free[k, r] < demand[r]:
                at = k + 1
                break
        k += 1
    return at


@njit(cache=True, nogil=True)
def _book(
    times: NDArray[np.int64],
    free: NDArray[np.int64],
    size: int,
    at: int,
    demand: NDArray[np.int32],
    estimate: int,
) -> int:
    """Takes the room of a job out of the plan, and returns the plan's new size."""
    over = times[at] + estimate
    last = at
    while last < size and times[last] < over:
        last += 1
    if last == size or times[last] > over:
        for k in range(size, last, -1):
            times[k] = times[k - 1]
            for r in range(demand.size):
                free[k, r] = free[k - 1, r]
        times[last] = over
        for r in range(demand.size):
            free[last, r] = free[last - 1, r]
        size += 1
    for k in range(at, last):
        for r in range(demand.size):
            free[k, r] -= demand[r]
    return size
