"""The queue of an episode: jobs that wait, in an order, between two places of an array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import Episode, is_overdue, start_job
from cluster_env.worlds.hpc.rules import CHANCE, FIXED, PRIORITY, RuleTable, moving_score

GONE = -1  # in the place of a job that has started
_OVERDUE = -np.inf  # the score of jobs that go first, whatever the order
_MOVES = 8  # of each job on average, from which sorting anew is quicker than by insertion


@njit_inlined
def enqueue(episode: Episode, job: int, key: float) -> None:
    """Lets a job wait, behind all whose score is at most its own."""
    status = episode.status[0]
    head, tail = status.head, status.tail
    # Most jobs of most orders come last; for the others the place is found by halves.
    low, high = head, tail
    if tail > head and episode.keys[tail - 1] <= key:
        low = tail
    while low < high:
        middle = (low + high) >> 1
        if episode.keys[middle] <= key:
            low = middle + 1
        else:
            high = middle
    if head > 0 and low - head < tail - low:  # the shorter part makes room
        head -= 1
        low -= 1
        _shift_down(episode.queue[head : low + 1])
        _shift_down(episode.keys[head : low + 1])
        _shift_down(episode.widths[head : low + 1])
    else:
        tail += 1
        _shift_up(episode.queue[low:tail])
        _shift_up(episode.keys[low:tail])
        _shift_up(episode.widths[low:tail])
    status.head, status.tail = head, tail
    episode.queue[low], episode.keys[low] = job, key
    episode.widths[low] = episode.demand[job, 0]
    status.narrowest = min(status.narrowest, np.int64(episode.demand[job, 0]))


@njit_inlined
def _shift_down(part: NDArray[Any]) -> None:
    """Moves all but the first one place to the front; the loop becomes a block move."""
    for place in range(part.size - 1):
        part[place] = part[place + 1]


@njit_inlined
def _shift_up(part: NDArray[Any]) -> None:
    """Moves all but the last one place to the back."""
    for place in range(part.size - 1, 0, -1):
        part[place] = part[place - 1]


@njit_inlined
def start_waiting(episode: Episode, place: int, now: int) -> None:
    """Starts the job at a place of a queue in order of arrival, and keeps the sums of `STATUS`."""
    status, job = episode.status[0], episode.queue[place]
    # It leaves the queue.
    head, tail = status.head, status.tail
    if place - head < tail - place:  # the shorter part moves
        for k in range(place, head, -1):
            episode.queue[k] = episode.queue[k - 1]
            episode.widths[k] = episode.widths[k - 1]
        status.head = head + 1
    else:
        for k in range(place, tail - 1):
            episode.queue[k] = episode.queue[k + 1]
            episode.widths[k] = episode.widths[k + 1]
        status.tail = tail - 1
    # It is counted among those that run.
    start_job(episode, job, now, True)
    log, size = episode.jobs[job].log, episode.demand[job, 0]
    status.queue_log -= log
    status.queue_work -= float(episode.jobs[job].order_estimate) * size
    status.run_log += log
    status.run_work += float(now + episode.jobs[job].estimate) * size
    status.run_size += size


@njit_inlined
def close_gaps(episode: Episode, first: int, last: int, gaps: int) -> None:
    """Takes jobs that are gone out of the queue, by moving those before or those behind.

    There are so many gaps between the places of the first and the last.
    """
    head, tail = episode.status[0].head, episode.status[0].tail
    # Those before move back, or those behind move to the front, whichever are fewer.
    if last - head < tail - first:
        kept = last
        for place in range(last, head - 1, -1):
            if episode.queue[place] != GONE:
                _move(episode, place, kept)
                kept -= 1
        episode.status[0].head = head + gaps
        return
    kept = first
    for place in range(first, tail):
        if episode.queue[place] != GONE:
            _move(episode, place, kept)
            kept += 1
    episode.status[0].tail = tail - gaps


@njit_inlined
def _move(episode: Episode, place: int, target: int) -> None:
    """Moves a waiting job to another place of the queue."""
    episode.queue[target] = episode.queue[place]
    episode.keys[target] = episode.keys[place]
    episode.widths[target] = episode.widths[place]


@njit_inlined
def rank(episode: Episode, rule: RuleTable, now: int) -> None:
    """Sorts the waiting jobs by what their scores are now, equals by number."""
    queue, keys = episode.queue, episode.keys
    head, tail = episode.status[0].head, episode.status[0].tail
    budget = _MOVES * (tail - head) + 64
    total = 0.0
    for user in range(episode.usage.size):
        total += episode.usage[user]
    # By insertion: from one instant to the next the order hardly changes.
    for place in range(head, tail):
        keys[place] = _score(episode, rule, queue[place], now, total)
        job, key, hole = queue[place], keys[place], place
        while hole > head and (
            keys[hole - 1] > key or (keys[hole - 1] == key and queue[hole - 1] > job)
        ):
            queue[hole], keys[hole] = queue[hole - 1], keys[hole - 1]
            hole -= 1
        queue[hole], keys[hole] = job, key
        budget -= place - hole
        if budget < 0:
            break
    # It has changed much after all.
    if budget < 0:
        for place in range(head, tail):
            keys[place] = _score(episode, rule, queue[place], now, total)
        _sort(queue[head:tail], keys[head:tail])
    for place in range(head, tail):
        episode.widths[place] = episode.demand[queue[place], 0]


@njit_inlined
def move_overdue(episode: Episode, rule: RuleTable, oldest: int, now: int) -> int:
    """Moves jobs that are overdue now to the front of a queue in a fixed order.

    All jobs before the oldest one have been looked at before. Returns the first that is not
    overdue.
    """
    status = episode.status[0]
    while oldest < status.coming and is_overdue(episode, oldest, now, rule.max_wait):
        place = target = status.head
        while place < status.tail and episode.queue[place] != oldest:
            target += episode.keys[target] == _OVERDUE  # behind those that came before
            place += 1
        if place < status.tail:  # else it has started
            for k in range(place, target, -1):
                _move(episode, k - 1, k)
            episode.queue[target], episode.keys[target] = oldest, _OVERDUE
            episode.widths[target] = episode.demand[oldest, 0]
        oldest += 1
    return oldest


@njit_inlined
def _score(episode: Episode, rule: RuleTable, job: int, now: int, total: float) -> float:
    if is_overdue(episode, job, now, rule.max_wait):
        return _OVERDUE
    if rule.kind == FIXED or rule.kind == CHANCE:
        return rule.score[job]
    # Who has used as much as is fair has a half, who has used nothing has 1.
    fair_share = 1.0
    if rule.kind == PRIORITY and total > 0:
        share = episode.usage[episode.jobs[job].user] / total
        fair_share = 2.0 ** (-share * episode.status[0].num_users)
    return moving_score(
        rule.kind,
        now - episode.jobs[job].arrival,
        episode.jobs[job].order_estimate,
        episode.demand[job],
        episode.free,
        episode.capacity,
        rule.weights,
        fair_share,
    )


@njit_inlined
def _sort(queue: NDArray[np.int32], keys: NDArray[np.float64]) -> None:
    """Sorts by key, equals by number, by a heap: numba's own sorts take seconds to compile."""
    # A heap with the last of the order on top, which goes to the end, again and again.
    for top in range(queue.size // 2 - 1, -1, -1):
        _sift(queue, keys, top, queue.size)
    for size in range(queue.size - 1, 0, -1):
        queue[0], queue[size] = queue[size], queue[0]
        keys[0], keys[size] = keys[size], keys[0]
        _sift(queue, keys, 0, size)


@njit_inlined
def _sift(queue: NDArray[np.int32], keys: NDArray[np.float64], top: int, size: int) -> None:
    """Lets the top of a part of the heap sink to its place; the last of the order stands on top."""
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
