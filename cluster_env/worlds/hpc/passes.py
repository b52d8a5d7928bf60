"""What one rule does at one instant: which of the waiting jobs start."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import expect, fits, push, reserve
from cluster_env.worlds.hpc.orders import PRIORITY, moving_score

HEAD, TAIL, RUNNING, SMALLEST = range(4)

GONE = -1  # in the place of a job that has started
_MOVES = 8  # of each job on average, from which sorting anew is quicker than by insertion


class Plan(NamedTuple):
    """When waiting jobs are to start; see `cluster_env.worlds.hpc.plans`."""

    state: NDArray[np.int64]  # see there
    start: NDArray[np.int64]  # (num_jobs,), of those that wait
    narrowest: NDArray[np.int32]  # of a job in the queue and all behind it
    times: NDArray[np.int64]  # when what is free changes
    free: NDArray[np.int64]  # (num_times, num_resources), what is free from then on
    reach: NDArray[np.int64]  # (32,), no time before has 2^k processors free


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
    queue: NDArray[np.int32]  # waiting jobs in their order, from sizes[HEAD] to sizes[TAIL] - 1
    keys: NDArray[np.float64]  # their scores
    widths: NDArray[np.int32]  # their processors
    ends: NDArray[np.int64]  # heap of true ends
    running: NDArray[np.int32]
    expected: NDArray[np.int64]  # expected ends in falling order
    expected_jobs: NDArray[np.int32]
    sizes: NDArray[np.int64]  # HEAD, TAIL, RUNNING; SMALLEST: no waiting job is narrower
    plan: Plan


@njit_inlined
def begin(it: Episode, job: int, now: int, track: bool) -> None:
    """Starts a job; `track` says whether expected ends are asked for."""
    it.start[job] = now
    for r in range(it.free.size):
        it.free[r] -= it.demand[job, r]
    count = it.sizes[RUNNING]
    push(it.ends, it.running, count, now + it.duration[job], job)
    if track:
        expect(it.expected, it.expected_jobs, count, now + it.estimate[job], job)
    it.sizes[RUNNING] = count + 1


@njit_inlined
def enqueue(it: Episode, job: int) -> None:
    """Lets a job wait, behind all whose score is at most its own."""
    head, tail, key = it.sizes[HEAD], it.sizes[TAIL], it.score[job]
    low, high = head, tail
    if tail > head and it.keys[tail - 1] <= key:
        low = tail
    while low < high:
        middle = (low + high) >> 1
        if it.keys[middle] <= key:
            low = middle + 1
        else:
            high = middle
    if head > 0 and low - head < tail - low:  # the shorter part makes room
        head -= 1
        low -= 1
        shift_down(it.queue[head : low + 1])
        shift_down(it.keys[head : low + 1])
        shift_down(it.widths[head : low + 1])
    else:
        tail += 1
        shift_up(it.queue[low:tail])
        shift_up(it.keys[low:tail])
        shift_up(it.widths[low:tail])
    it.sizes[HEAD], it.sizes[TAIL] = head, tail
    it.queue[low], it.keys[low], it.widths[low] = job, key, it.demand[job, 0]
    it.sizes[SMALLEST] = min(it.sizes[SMALLEST], it.demand[job, 0])


@njit_inlined
def shift_down(part: NDArray[Any]) -> None:
    """Moves all but the first one place to the front; the loop becomes a block move."""
    for place in range(part.size - 1):
        part[place] = part[place + 1]


@njit_inlined
def shift_up(part: NDArray[Any]) -> None:
    """Moves all but the last one place to the back."""
    for place in range(part.size - 1, 0, -1):
        part[place] = part[place - 1]


@njit_inlined
def start_in_order(it: Episode, now: int, track: bool) -> None:
    """Starts jobs from the first on, as long as they fit."""
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    while head < tail and fits(it.demand, it.queue[head], it.free):
        begin(it, it.queue[head], now, track)
        head += 1
    it.sizes[HEAD] = head


@njit_inlined
def start_fitting(it: Episode, now: int, backfills: bool) -> int:
    """Starts whatever fits, in order.

    With `backfills` the first job, which does not fit, gets a reservation, and what delays it does
    not start: a job has to end before, as expected, or to use what is spare then. Without it, long
    jobs must leave a reserve if the rule has one.

    Returns:
        The time of the reservation, if there is one.
    """
    place, tail = it.sizes[HEAD], it.sizes[TAIL]
    shadow = np.int64(0)
    if backfills:
        count, first = it.sizes[RUNNING], it.queue[place]
        shadow = reserve(
            it.expected, it.expected_jobs, count, it.demand, first, now, it.free, it.spare
        )
        place += 1
    free, least = it.free[0], it.sizes[SMALLEST]
    first_gap, last_gap, gaps = tail, tail, 0
    while free >= least:
        while place < tail and it.widths[place] > free:  # most of them, in a long queue
            place += 1
        if place == tail:
            break
        job = it.queue[place]
        if may_start(it, job, now, shadow, backfills):
            begin(it, job, now, backfills)
            free = it.free[0]
            it.queue[place] = GONE
            first_gap, last_gap, gaps = min(first_gap, place), place, gaps + 1
        place += 1
    if gaps > 0:
        close_gaps(it, first_gap, last_gap, gaps)
    if place >= tail:
        smallest = np.int32(2**31 - 1)
        for k in range(it.sizes[HEAD], it.sizes[TAIL]):
            smallest = min(smallest, it.widths[k])
        it.sizes[SMALLEST] = smallest
    return int(shadow)


@njit_inlined
def may_start(it: Episode, job: int, now: int, shadow: int, backfills: bool) -> bool:
    """Whether a job behind the first one may start; takes what is spare if it needs that."""
    if not fits(it.demand, job, it.free):
        return False
    if not backfills:
        alone = it.sizes[RUNNING] == 0
        return bool(it.demand[job, 0] + it.left_free[job] <= it.free[0] or alone)
    if now + it.order_estimate[job] <= shadow:
        return True
    if not fits(it.demand, job, it.spare):
        return False
    for r in range(it.spare.size):
        it.spare[r] -= it.demand[job, r]
    return True


@njit_inlined
def close_gaps(it: Episode, first: int, last: int, gaps: int) -> None:
    """Takes jobs that are gone out of the queue, by moving those before or those behind.

    Args:
        it: the episode.
        first: place of the first that is gone.
        last: place of the last.
        gaps: how many are gone.
    """
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    if last - head < tail - first:
        kept = last
        for place in range(last, head - 1, -1):
            if it.queue[place] != GONE:
                move(it, place, kept)
                kept -= 1
        it.sizes[HEAD] = head + gaps
        return
    kept = first
    for place in range(first, tail):
        if it.queue[place] != GONE:
            move(it, place, kept)
            kept += 1
    it.sizes[TAIL] = tail - gaps


@njit_inlined
def move(it: Episode, place: int, target: int) -> None:
    """Moves a waiting job to another place of the queue."""
    it.queue[target] = it.queue[place]
    it.keys[target] = it.keys[place]
    it.widths[target] = it.widths[place]


@njit_inlined
def rank(it: Episode, kind: int, now: int) -> None:
    """Sorts the waiting jobs by what their moving scores are now."""
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    budget = _MOVES * (tail - head) + 64
    total = 0.0
    for user in range(it.usage.size):
        total += it.usage[user]
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
    if budget < 0:
        for place in range(head, tail):
            it.keys[place] = _score(it, kind, it.queue[place], now, total)
        _sort(it.queue[head:tail], it.keys[head:tail])
    for place in range(head, tail):
        it.widths[place] = it.demand[it.queue[place], 0]


@njit_inlined
def _sort(queue: NDArray[np.int32], keys: NDArray[np.float64]) -> None:
    """Sorts by key, equals by number, by a heap: numba's own sorts take seconds to compile."""
    for top in range(queue.size // 2 - 1, -1, -1):
        _sift(queue, keys, top, queue.size)
    for size in range(queue.size - 1, 0, -1):
        queue[0], queue[size] = queue[size], queue[0]
        keys[0], keys[size] = keys[size], keys[0]
        _sift(queue, keys, 0, size)


@njit_inlined
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


@njit_inlined
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
