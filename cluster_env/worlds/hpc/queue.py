"""The queue of an episode: jobs that wait, in an order, between two places of an array.

Where an episode has room for it and the queue is long, only the first of those jobs that are alike
(`cluster_env.worlds.hpc.alike`) stands in the queue, and the others behind it. Users submit
thousands of such jobs, so that an event costs as much as there are kinds of jobs, not jobs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import NOBODY, Episode, is_overdue, start_job
from cluster_env.worlds.hpc.rules import (
    CHANCE,
    FIXED,
    PACKER,
    PRIORITY,
    TETRIS,
    RuleTable,
    Scores,
    moving_score,
)

_BY_ITSELF = -2  # behind a job that stands in the queue whoever is alike
_LONG = 32  # jobs that stand in a queue in which it pays to look who is alike
_OVERDUE = -np.inf  # the score of jobs that go first, whatever the order
_MOVES = 8  # of each job on average, from which sorting anew is quicker than by insertion


@njit_inlined
def enqueue(episode: Episode, job: int, key: float) -> None:
    """Lets a job that has just come wait: behind those that are alike, or by its score."""
    status = episode.status[0]
    status.narrowest = min(status.narrowest, np.int64(episode.demand[job, 0]))
    if episode.last_alike.size > 0 and status.tail - status.head < _LONG:
        episode.next_alike[job] = _BY_ITSELF
    elif episode.last_alike.size > 0:
        alike = episode.jobs[job].alike
        last = episode.last_alike[alike]
        episode.last_alike[alike], episode.next_alike[job] = job, NOBODY
        if last != NOBODY:
            episode.next_alike[last] = job
            status.behind += 1
            return
    _insert(episode, job, key)


@njit_inlined
def _insert(episode: Episode, job: int, key: float) -> None:
    """Puts a job behind all whose score is at most its own."""
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
    # The shorter part makes room, or the one that has any.
    if head > 0 and (low - head < tail - low or tail == episode.queue.size):
        head -= 1
        low -= 1
        shift_down(episode.queue[head : low + 1])
        shift_down(episode.keys[head : low + 1])
        shift_down(episode.widths[head : low + 1])
    else:
        tail += 1
        shift_up(episode.queue[low:tail])
        shift_up(episode.keys[low:tail])
        shift_up(episode.widths[low:tail])
    status.head, status.tail = head, tail
    episode.queue[low], episode.keys[low] = job, key
    episode.widths[low] = episode.demand[job, 0]


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
def _leave(episode: Episode, place: int, key: float) -> None:
    """Takes a job out of the queue; the next that is alike comes forward, with this score."""
    status, queue, keys = episode.status[0], episode.queue, episode.keys
    head, tail, job = status.head, status.tail, episode.queue[place]
    if episode.last_alike.size > 0:
        after = episode.next_alike[job]
        if after >= 0:
            width = episode.widths[place]
            while place + 1 < tail and (
                keys[place + 1] < key or (keys[place + 1] == key and queue[place + 1] < after)
            ):
                _move(episode, place + 1, place)
                place += 1
            queue[place], keys[place], episode.widths[place] = after, key, width
            status.behind -= 1
            return
        if after == NOBODY:
            episode.last_alike[episode.jobs[job].alike] = NOBODY
    # The shorter part closes the gap.
    if place - head < tail - place:
        for k in range(place, head, -1):
            _move(episode, k - 1, k)
        status.head = head + 1
    else:
        for k in range(place, tail - 1):
            _move(episode, k + 1, k)
        status.tail = tail - 1


@njit_inlined
def _move(episode: Episode, place: int, target: int) -> None:
    """Moves a waiting job to another place of the queue, with its score if the queue has any."""
    episode.queue[target] = episode.queue[place]
    episode.widths[target] = episode.widths[place]
    if episode.keys.size > 0:
        episode.keys[target] = episode.keys[place]


@njit_inlined
def start_ranked(episode: Episode, rule: RuleTable, place: int, now: int, tracks: bool) -> None:
    """Starts the job at a place of a queue in a rule's order.

    Those before it and behind it stay where they are as counted from the head; the next that is
    alike goes to its place among those behind.
    """
    job = episode.queue[place]
    _leave(episode, place, _score_after(episode, rule, place, now))
    start_job(episode, job, now, tracks)


@njit_inlined
def start_waiting(episode: Episode, place: int, now: int) -> None:
    """Starts the job at a place of a queue in order of arrival, and keeps the sums of `STATUS`."""
    status, job = episode.status[0], episode.queue[place]
    _leave(episode, place, 0.0)
    start_job(episode, job, now, True)
    log, size = episode.jobs[job].log, episode.demand[job, 0]
    status.queue_log -= log
    status.queue_work -= float(episode.jobs[job].order_estimate) * size
    status.run_log += log
    status.run_work += float(now + episode.jobs[job].estimate) * size
    status.run_size += size


@njit_inlined
def rank(episode: Episode, rule: RuleTable, now: int) -> None:
    """Sorts the waiting jobs by what their scores are now, equals by number."""
    queue, keys = episode.queue, episode.keys
    head, tail = episode.status[0].head, episode.status[0].tail
    budget = _MOVES * (tail - head) + 64
    total = _usage(episode)
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
def move_overdue(episode: Episode, scores: Scores, oldest: int, now: int, max_wait: int) -> int:
    """Moves jobs that are overdue now to the front of the queue, in order of arrival.

    All jobs before the oldest one have been looked at before. Returns the first that is not
    overdue. The scores are those of a fixed order, ``(num_jobs,)``, or of no job.
    """
    status = episode.status[0]
    while oldest < status.coming and is_overdue(episode, oldest, now, max_wait):
        if episode.start[oldest] < 0:
            place = status.tail - 1
            while episode.queue[place] != oldest:
                place -= 1
            # None that is alike waits before it any more, and it leaves the others.
            key = episode.keys[place]
            if episode.last_alike.size > 0:
                after = episode.next_alike[oldest]
                key = scores[after] if after >= 0 and scores.size > 0 else key
            _leave(episode, place, key)
            if episode.last_alike.size > 0:
                episode.next_alike[oldest] = _BY_ITSELF
            _insert(episode, oldest, _OVERDUE)
        oldest += 1
    return oldest


@njit_inlined
def _score_after(episode: Episode, rule: RuleTable, place: int, now: int) -> float:
    """The score of the job that is alike and comes after that at a place; its own if none does."""
    after = np.int32(NOBODY)
    if episode.last_alike.size > 0:
        after = episode.next_alike[episode.queue[place]]
    # Of what is free, a score has what was free when the instant began.
    if after < 0 or rule.kind == PACKER or rule.kind == TETRIS:
        return episode.keys[place] if episode.keys.size > 0 else 0.0
    total = _usage(episode) if rule.kind == PRIORITY else 0.0
    return _score(episode, rule, after, now, total)


@njit_inlined
def _usage(episode: Episode) -> float:
    """What all users have used."""
    total = 0.0
    for user in range(episode.usage.size):
        total += episode.usage[user]
    return total


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
