"""The queue of an episode: jobs that wait, in an order, between two places of an array.

In a pool, equal scores go by arrival. At a site there is one queue for all partitions: overdue jobs
stand before all others, then tiers count, then scores, then when a job entered the queue.

Where an episode has room for it and the queue is long, only the first of those jobs that are alike
(`cluster_env.worlds.hpc.jobs`) stands in the queue, and the others behind it. Users submit
thousands of such jobs, so that an event costs as much as there are kinds of jobs, not jobs.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import (
    ZERO,
    njit_called,
    njit_called_where,
    njit_either,
    njit_inlined,
)
from cluster_env.worlds.hpc.events import Episode, Indices, came, fits, is_overdue
from cluster_env.worlds.hpc.jobs import NOBODY
from cluster_env.worlds.hpc.rules import (
    AGE_S,
    CHANCE,
    CONSERVATIVE,
    FIXED,
    NO_FORMULA,
    PACKER,
    PRIORITY,
    SCORED,
    TETRIS,
    Scores,
    fixed_score,
    moving_score,
)
from cluster_env.worlds.hpc.seen import look_at, score_job

OVERDUE = -np.inf
"""The score of jobs that go first, whatever the order."""

_BY_ITSELF = -2  # behind a job that stands in the queue whoever is alike
_LONG = 32  # jobs that stand in a queue in which it pays to look who is alike
_MOVES = 8  # of each job on average, from which sorting anew is quicker than by insertion


@njit_inlined
def _before_in_pool(episode: Episode, job: int, key: float, other: int, other_key: float) -> bool:
    """Whether a job with a score goes before another with its own."""
    return bool(key < other_key or (key == other_key and job < other))


@njit_inlined
def _before_at_site(episode: Episode, job: int, key: float, other: int, other_key: float) -> bool:
    overdue, other_overdue = key == OVERDUE, other_key == OVERDUE
    if overdue != other_overdue:
        return bool(overdue)
    if episode.status[0].tiered and not overdue:
        tier, other_tier = episode.jobs[job].tier, episode.jobs[other].tier
        if tier != other_tier:
            return bool(tier > other_tier)
    if key != other_key:
        return bool(key < other_key)
    time, other_time = episode.site.eligible[job], episode.site.eligible[other]
    return bool(time < other_time or (time == other_time and job < other))


_goes_before = njit_either(_before_in_pool, _before_at_site, "site")


@njit_inlined
def first_key(episode: Episode, job: int) -> float:
    """The score with which a job enters the queue; that of a moving order follows."""
    rule = episode.order.rule
    if rule.formula == NO_FORMULA:
        return rule.score[job]
    estimate, size = float(episode.jobs[job].order_estimate), float(episode.demand[job, 0])
    return fixed_score(rule.formula, estimate, size, float(rule.submit[job]), job)


@njit_inlined
def _wait_in_pool(episode: Episode, job: int, sign: int) -> None:
    """Counts a job that waits from now on (1), or no longer (-1)."""


@njit_inlined
def _wait_at_site(episode: Episode, job: int, sign: int) -> None:
    record = episode.jobs[job]
    episode.site.set_waiting[record.set] += sign
    episode.site.partitions[record.partition].waiting += sign


_wait = njit_either(_wait_in_pool, _wait_at_site, "site")


@njit_called_where("site")
def enter(episode: Episode, job: int) -> None:
    """Lets a job that has just come wait: behind those that are alike, or by its score."""
    status = episode.status[0]
    place = status.tail - status.head
    if not _lines_up(episode, job):
        place = insert(episode, job, first_key(episode, job)) - status.head
    _wait(episode, job, 1)
    # A job before others that are blocked, or one of several, is not all that is to be looked at;
    # those that a plan has have their rooms already.
    alone = status.new_jobs == 0 or episode.order.rule.mode == CONSERVATIVE
    status.holds = status.holds and alone and place > status.last
    status.new_jobs, status.new_place = status.new_jobs + 1, place


@njit_inlined
def _lines_up_in_pool(episode: Episode, job: int) -> bool:
    """Lets a job wait behind those that are alike, if there are any; returns whether it does."""
    status, follows = episode.status[0], False
    if episode.last_alike.size > 0 and status.tail - status.head < _LONG:
        episode.next_alike[job] = _BY_ITSELF
    elif episode.last_alike.size > 0:
        alike = episode.jobs[job].alike
        last = episode.last_alike[alike]
        episode.last_alike[alike], episode.next_alike[job] = job, NOBODY
        if last != NOBODY:
            episode.next_alike[last] = job
            status.behind += 1
            follows = True
    return follows


@njit_inlined
def insert(episode: Episode, job: int, key: float) -> int:
    """Puts a job into its place in the queue, and returns it."""
    status, queue, keys, widths = episode.status[0], episode.queue, episode.keys, episode.widths
    head, tail, size = status.head, status.tail, episode.demand[job, 0]
    # Most jobs of most orders come last; for the others the place is found by halves.
    low, high = head, tail
    if tail > head and not _goes_before(
        episode, job, key, np.int64(queue[tail - 1]), keys[tail - 1]
    ):
        low = tail
    while low < high:
        middle = (low + high) >> 1
        if _goes_before(episode, job, key, np.int64(queue[middle]), keys[middle]):
            high = middle
        else:
            low = middle + 1
    # The shorter part makes room, or the one that has any.
    if head > 0 and (low - head < tail - low or tail == queue.size):
        head -= 1
        low -= 1
        _shift_down(queue[head : low + 1], keys[head : low + 1], widths[head : low + 1])
    else:
        tail += 1
        _shift_up(queue[low:tail], keys[low:tail], widths[low:tail])
    status.head, status.tail = head, tail
    queue[low], keys[low], widths[low] = job, key, size
    status.narrowest = min(status.narrowest, np.int64(size))
    return int(low)


@njit_called
def _shift_down(queue: Indices, keys: Scores, widths: Indices) -> None:
    """Moves all but the first one place to the front; each loop becomes a block move."""
    for place in range(queue.size - 1):
        queue[place] = queue[place + 1]
    for place in range(keys.size - 1):
        keys[place] = keys[place + 1]
    for place in range(widths.size - 1):
        widths[place] = widths[place + 1]


@njit_called
def _shift_up(queue: Indices, keys: Scores, widths: Indices) -> None:
    """Moves all but the last one place to the back."""
    for place in range(queue.size - 1, 0, -1):
        queue[place] = queue[place - 1]
    for place in range(keys.size - 1, 0, -1):
        keys[place] = keys[place - 1]
    for place in range(widths.size - 1, 0, -1):
        widths[place] = widths[place - 1]


@njit_inlined
def leave(episode: Episode, place: int, now: int) -> None:
    """Takes a job out of the queue; the next that is alike comes forward, to its place behind."""
    _wait(episode, np.int64(episode.queue[place]), -1)
    if not _next_comes(episode, place, now):
        close_gap(episode, place)


@njit_inlined
def _comes_forward(episode: Episode, place: int, now: int) -> bool:
    """Lets the next job that is alike take the place of one that leaves; False if there is none."""
    if episode.last_alike.size == 0:
        return False
    return _gives_way(episode, place, _score_after(episode, place, now))


@njit_inlined
def _nobody_comes_forward(episode: Episode, place: int, now: int) -> bool:
    return False


@njit_inlined
def _stands_alone(episode: Episode, job: int) -> bool:
    return False


_lines_up = njit_either(_lines_up_in_pool, _stands_alone, "site")
_next_comes = njit_either(_comes_forward, _nobody_comes_forward, "site")


@njit_inlined
def _gives_way(episode: Episode, place: int, key: float) -> bool:
    """Lets the next job that is alike take the place of one that leaves; False if there is none."""
    status, queue, keys = episode.status[0], episode.queue, episode.keys
    tail, job = status.tail, episode.queue[place]
    after = np.int64(episode.next_alike[job])
    if after >= 0:
        width = episode.widths[place]
        while place + 1 < tail and (
            keys[place + 1] < key or (keys[place + 1] == key and queue[place + 1] < after)
        ):
            queue[place], keys[place] = queue[place + 1], keys[place + 1]
            episode.widths[place] = episode.widths[place + 1]
            place += 1
        queue[place], keys[place], episode.widths[place] = after, key, width
        status.behind -= 1
    elif after == NOBODY:
        episode.last_alike[episode.jobs[job].alike] = NOBODY
    return bool(after >= 0)


@njit_inlined
def close_gap(episode: Episode, place: int) -> None:
    """Takes the job at a place out of the queue; the shorter part moves. It may have no scores."""
    status, queue, keys, widths = episode.status[0], episode.queue, episode.keys, episode.widths
    head, tail = status.head, status.tail
    if place - head < tail - place:
        _shift_up(queue[head : place + 1], keys[head : place + 1], widths[head : place + 1])
        status.head = head + 1
    else:
        _shift_down(queue[place:tail], keys[place:tail], widths[place:tail])
        status.tail = tail - 1


@njit_inlined
def settle(episode: Episode) -> None:
    """Sorts the waiting jobs by the scores that stand there."""
    head, tail = episode.status[0].head, episode.status[0].tail
    queue, keys = episode.queue[head:tail], episode.keys[head:tail]
    budget = _MOVES * queue.size + 64
    # By insertion: from one instant to the next the order hardly changes.
    for place in range(queue.size):
        job, key, hole = np.int64(queue[place]), keys[place], np.int64(place)
        while hole > 0 and _goes_before(
            episode, job, key, np.int64(queue[hole - 1]), keys[hole - 1]
        ):
            queue[hole], keys[hole] = queue[hole - 1], keys[hole - 1]
            hole -= 1
        queue[hole], keys[hole] = job, key
        budget -= int(place - hole)
        if budget < 0:  # it has changed much after all
            _sort(episode, queue, keys)
            break
    for place in range(head, tail):
        episode.widths[place] = episode.demand[episode.queue[place], 0]


@njit_inlined
def _write_scores(episode: Episode, now: int) -> None:
    """Writes the scores of all waiting jobs."""
    total = _usage(episode) if episode.order.rule.kind == PRIORITY else 0.0
    for place in range(episode.status[0].head, episode.status[0].tail):
        job = np.int64(episode.queue[place])
        episode.keys[place] = _score(episode, job, now, total)


@njit_inlined
def _rank_in_pool(episode: Episode, now: int) -> None:
    """Sorts the waiting jobs by what their scores are now; those of a scorer are never sorted."""
    if episode.order.rule.kind != SCORED:
        _write_scores(episode, now)
        settle(episode)


@njit_called
def _rank_at_site(episode: Episode, now: int) -> None:
    if episode.order.rule.kind != SCORED:
        _write_scores(episode, now)
    else:
        for part in range(episode.site.partitions.size - 1):  # the last one is of all
            if episode.site.partitions[part].waiting > 0:
                _score_partition(episode, part, now)
    settle(episode)


rank = njit_either(_rank_in_pool, _rank_at_site, "site")


@njit_inlined
def _has_units_in_pool(episode: Episode, job: int) -> bool:
    """Whether what a job asks for is free where it may run."""
    return fits(episode.demand, job, episode.free)


@njit_inlined
def _has_units_in_set(episode: Episode, job: int) -> bool:
    return fits(episode.demand, job, episode.site.set_free[episode.jobs[job].set])


has_units = njit_either(_has_units_in_pool, _has_units_in_set, "site")


@njit_inlined
def _score_partition(episode: Episode, part: int, now: int) -> None:
    """Writes the scores of the jobs of one partition under a scorer: it is their machine."""
    site, status = episode.site, episode.status[0]
    sums, own, next_end = site.partitions[part], site.layout.partition_set[part], 0.0
    free, processors = float(site.set_free[own, 0]), float(site.layout.set_units[own, 0])
    if sums.running > 0:
        place = status.running - 1
        while episode.jobs[episode.expected_jobs[place]].partition != part:
            place -= 1
        next_end = float(max(episode.expected[place] - now, 0))
    scoring = episode.order.scoring
    factors = look_at(scoring, sums, now, free, processors, sums.waiting, sums.running, next_end)
    share = 1.0 / max(free, 1.0)
    for place in range(status.head, status.tail):
        job = np.int64(episode.queue[place])
        record = episode.jobs[job]
        if record.partition != part:
            continue
        size, lasting = float(episode.demand[job, 0]), float(record.order_estimate)
        lasting += float(now - site.eligible[job])
        score = score_job(factors, record.log, record.log_size, size, lasting, share)
        if has_units(episode, job):
            score += factors.fits
        episode.keys[place] = OVERDUE if is_overdue(episode, job, now) else score


@njit_inlined
def note_narrowest(episode: Episode) -> None:
    """Works out what the narrowest job asks for, which is known again once all were looked at."""
    narrowest = np.int32(2**31 - 1)
    for place in range(episode.status[0].head, episode.status[0].tail):
        narrowest = min(narrowest, episode.widths[place])
    episode.status[0].narrowest = narrowest


@njit_inlined
def _move_overdue_in_pool(episode: Episode, now: int) -> bool:
    """Moves jobs that are overdue now to the front of the queue; returns whether any is.

    All jobs before the oldest one have been looked at before.
    """
    status, oldest = episode.status[0], episode.status[0].oldest
    while oldest < status.coming and is_overdue(episode, oldest, now):
        if episode.start[oldest] < 0:
            place = status.tail - 1
            while episode.queue[place] != oldest:
                place -= 1
            # None that is alike waits before it any more, and it leaves the others.
            lined_up, key = episode.last_alike.size > 0, episode.keys[place]
            if lined_up and episode.next_alike[oldest] >= 0 and episode.order.rule.kind == FIXED:
                key = first_key(episode, np.int64(episode.next_alike[oldest]))
            if not lined_up or not _gives_way(episode, place, key):
                close_gap(episode, place)
            if lined_up:
                episode.next_alike[oldest] = _BY_ITSELF
            insert(episode, oldest, OVERDUE)
        oldest += 1
    status.oldest = oldest
    head = status.head
    return bool(status.tail > head and is_overdue(episode, np.int64(episode.queue[head]), now))


@njit_called
def _move_overdue_at_site(episode: Episode, now: int) -> bool:
    some, more = False, False
    for place in range(episode.status[0].head, episode.status[0].tail):
        if is_overdue(episode, np.int64(episode.queue[place]), now):
            some, more = True, more or episode.keys[place] != OVERDUE
            episode.keys[place] = OVERDUE
    if more:
        settle(episode)
    return some


move_overdue = njit_either(_move_overdue_in_pool, _move_overdue_at_site, "site")


@njit_inlined
def _score_after(episode: Episode, place: int, now: int) -> float:
    """The score of the job that is alike and comes after that at a place; its own if none does."""
    after, kind = np.int64(episode.next_alike[episode.queue[place]]), episode.order.rule.kind
    # Of what is free, a score has what was free when the instant began.
    if after < 0 or kind in (PACKER, TETRIS, SCORED):
        return float(episode.keys[place])
    total = _usage(episode) if kind == PRIORITY else 0.0
    return float(_score(episode, after, now, total))


@njit_inlined
def _usage(episode: Episode) -> float:
    """What all users have used."""
    total = 0.0
    for user in range(episode.usage.size):
        total += episode.usage[user]
    return total


@njit_inlined
def _machine_in_pool(
    episode: Episode, job: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], float, float]:
    """What a score takes for a job's machine: what is free there, and all its units.

    And by how much a second of waiting counts more than elsewhere, and what the job has ahead.
    """
    return episode.free, episode.capacity, 1.0, 0.0


@njit_inlined
def _machine_at_site(
    episode: Episode, job: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], float, float]:
    layout, order = episode.site.layout, episode.order
    own = layout.partition_set[episode.jobs[job].partition]
    free, units, faster, ahead = episode.site.set_free[own], layout.set_units[own], 1.0, 0.0
    if order.rule.kind == PRIORITY:  # a site may let age count for longer, or for less
        units, faster = layout.total, AGE_S / layout.max_age
        ahead = order.bonus[job]
    return free, units, faster, ahead


_machine_of = njit_either(_machine_in_pool, _machine_at_site, "site")


@njit_inlined
def _score(episode: Episode, job: int, now: int, total: float) -> float:
    """The score of a waiting job under a rule; users have used ``total`` processor seconds."""
    rule = episode.order.rule
    if is_overdue(episode, job, now):
        return OVERDUE
    if rule.kind == FIXED or rule.kind == CHANCE:
        return first_key(episode, job)
    # Who has used as much as is fair has a half, who has used nothing has 1.
    fair_share = 1.0
    if rule.kind == PRIORITY and total > 0:
        share = episode.usage[episode.jobs[job].user] / total
        fair_share = 2.0 ** (-share * episode.status[0].num_users)
    free, units, faster, ahead = _machine_of(episode, job)
    score = moving_score(
        rule.kind,
        float(now - came(episode, job)) * faster,
        episode.jobs[job].order_estimate,
        episode.demand[job],
        free,
        units,
        rule.weights,
        fair_share,
        rule.own,
    )
    return score - ahead


@njit_inlined
def _sort(episode: Episode, queue: NDArray[np.int32], keys: NDArray[np.float64]) -> None:
    """Sorts by a heap, the last of the order on top: numba's own sorts take seconds to compile."""
    size = queue.size
    for step in range(size // 2 + size - 1):
        top, end = size // 2 - 1 - step, size
        if top < 0:  # the heap is built; its top goes to the end, again and again
            end = size - 1 - (step - size // 2)
            queue[0], queue[end] = queue[end], queue[0]
            keys[0], keys[end] = keys[end], keys[0]
            top = ZERO
        job, key = np.int64(queue[top]), keys[top]
        while True:
            below = 2 * top + 1
            if below >= end:
                break
            one, other = np.int64(queue[below]), np.int64(queue[min(below + 1, end - 1)])
            if below + 1 < end and _goes_before(episode, one, keys[below], other, keys[below + 1]):
                below, one = below + 1, other
            if not _goes_before(episode, job, key, one, keys[below]):
                break
            queue[top], keys[top] = queue[below], keys[below]
            top = below
        queue[top], keys[top] = job, key
