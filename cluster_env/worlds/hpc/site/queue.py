"""The queue of a site: one for all partitions, in the order of tiers and then of scores.

Equal scores go by the time at which jobs entered the queue, then by number. Overdue jobs stand
before all others. What a score sees of the machine is the job's own partition: its nodes, its
queue, what runs in it and what has come lately.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import ZERO, njit_inlined
from cluster_env.worlds.hpc.queue import shift_down, shift_up
from cluster_env.worlds.hpc.rules import AGE_S, CHANCE, FIXED, PRIORITY, moving_score
from cluster_env.worlds.hpc.seen import (
    Recent,
    Scoring,
    Situation,
    describe_state,
    deviation_of,
    score_job,
    weigh,
)
from cluster_env.worlds.hpc.site.arrays import Indices, Layout, Run, Work

SCORED = -1
"""The kind of an order that a scorer makes, beside those of `rules`."""

_OVERDUE = -np.inf
_MOVES = 8  # of each job on average, from which sorting anew is quicker than by insertion


class Order(NamedTuple):
    """A rule or a scorer as compiled code reads it, for the jobs that are loaded."""

    kind: int  # FIXED, CHANCE, which moving order, or SCORED
    mode: int  # index in BACKFILLING
    score: NDArray[np.float64]  # (num_jobs,), of a fixed order
    weights: NDArray[np.float64]  # (3,), of the order `priority`
    bonus: NDArray[np.float64]  # (num_jobs,), priority of a job's partition and QOS in it
    max_wait: int  # seconds after which a job is overdue, 0 for never
    scoring: Scoring  # of SCORED
    anew: bool  # whether scores change when a job starts
    shares: bool  # whether it looks at what users have used


@njit_inlined
def is_overdue(run: Run, order: Order, job: int, now: int) -> bool:
    """Whether a job has waited for longer than `HPC.max_wait`."""
    return bool(order.max_wait > 0 and now - run.eligible[job] > order.max_wait)


@njit_inlined
def _goes_before(work: Work, run: Run, job: int, key: float, other: int, other_key: float) -> bool:
    """Whether a job with a score goes before another with its own."""
    first = run.status[0].first
    overdue, other_overdue = key == _OVERDUE, other_key == _OVERDUE
    if overdue != other_overdue:
        return bool(overdue)
    if run.status[0].tiered and not overdue:
        tier, other_tier = work.records[first + job].tier, work.records[first + other].tier
        if tier != other_tier:
            return bool(tier > other_tier)
    if key != other_key:
        return bool(key < other_key)
    time, other_time = run.eligible[job], run.eligible[other]
    return bool(time < other_time or (time == other_time and job < other))


@njit_inlined
def insert(work: Work, run: Run, job: int, key: float) -> None:
    """Puts a job into its place in the queue."""
    status, queue, keys = run.status[0], run.queue, run.keys
    head, tail = status.head, status.head + status.waiting
    low, high, size = head, tail, work.brief[status.first + job, 0]
    # Most jobs of most orders come last.
    if tail > head and not _goes_before(
        work, run, job, key, np.int64(queue[tail - 1]), keys[tail - 1]
    ):
        low = tail
    while low < high:
        middle = (low + high) >> 1
        if _goes_before(work, run, job, key, np.int64(queue[middle]), keys[middle]):
            high = middle
        else:
            low = middle + 1
    # The shorter part makes room, or the one that has any.
    if head > 0 and (low - head < tail - low or tail == queue.size):
        head, low = head - 1, low - 1
        shift_down(queue[head : low + 1])
        shift_down(keys[head : low + 1])
        shift_down(run.widths[head : low + 1])
    else:
        tail += 1
        shift_up(queue[low:tail])
        shift_up(keys[low:tail])
        shift_up(run.widths[low:tail])
    queue[low], keys[low], run.widths[low] = job, key, size
    status.head, status.waiting = head, status.waiting + 1
    run.set_waiting[work.brief[status.first + job, 1]] += 1
    # A job before others that are blocked, or one of several, is not all that is to be looked at.
    status.holds = status.holds and status.new_jobs == 0 and low - head > status.last
    status.new_jobs, status.new_place = status.new_jobs + 1, low - head
    status.narrowest = min(status.narrowest, np.int64(size))


@njit_inlined
def leave(work: Work, run: Run, place: int) -> None:
    """Takes the job at a place of the array out of the queue; the shorter part closes the gap."""
    status, tail = run.status[0], run.status[0].head + run.status[0].waiting
    run.set_waiting[work.brief[status.first + run.queue[place], 1]] -= 1
    if place - status.head < tail - place:
        shift_up(run.queue[status.head : place + 1])
        shift_up(run.keys[status.head : place + 1])
        shift_up(run.widths[status.head : place + 1])
        status.head += 1
    else:
        shift_down(run.queue[place:tail])
        shift_down(run.keys[place:tail])
        shift_down(run.widths[place:tail])
    status.waiting -= 1


@njit_inlined
def move_overdue(work: Work, run: Run, order: Order, now: int) -> bool:
    """Lets jobs go first that are overdue now; returns whether any is."""
    some, head = False, run.status[0].head
    for place in range(head, head + run.status[0].waiting):
        job, key = run.queue[place], run.keys[place]
        if not is_overdue(run, order, job, now):
            continue
        some = True
        if key == _OVERDUE:
            continue
        hole = place
        while hole > head and _goes_before(
            work, run, np.int64(job), _OVERDUE, np.int64(run.queue[hole - 1]), run.keys[hole - 1]
        ):
            run.queue[hole], run.keys[hole] = run.queue[hole - 1], run.keys[hole - 1]
            hole -= 1
        run.queue[hole], run.keys[hole] = job, _OVERDUE
        for k in range(hole, place + 1):
            run.widths[k] = work.brief[run.status[0].first + run.queue[k], 0]
    return some


@njit_inlined
def rank(layout: Layout, work: Work, run: Run, order: Order, now: int) -> None:
    """Sorts the waiting jobs by what their scores are now."""
    status = run.status[0]
    head, tail = status.head, status.head + status.waiting
    queue, keys = run.queue[head:tail], run.keys[head:tail]
    if order.kind == SCORED:
        for part in range(run.partitions.size - 1):  # the last one is of all
            if run.partitions[part].waiting > 0:
                _score_partition(layout, work, run, order, part, now)
    else:
        total = 0.0
        for user in range(run.usage.size):
            total += run.usage[user]
        for place in range(status.waiting):
            keys[place] = _moving(layout, work, run, order, queue[place], now, total)
    # By insertion: from one instant to the next the order hardly changes.
    budget = _MOVES * status.waiting + 64
    for place in range(status.waiting):
        job, key, hole = np.int64(queue[place]), keys[place], np.int64(place)
        while hole > 0 and _goes_before(
            work, run, job, key, np.int64(queue[hole - 1]), keys[hole - 1]
        ):
            queue[hole], keys[hole] = queue[hole - 1], keys[hole - 1]
            hole -= 1
        queue[hole], keys[hole] = job, key
        budget -= place - hole
        if budget < 0:
            _sort(work, run, queue, keys)
            break
    for place in range(status.waiting):
        run.widths[head + place] = work.brief[status.first + queue[place], 0]


@njit_inlined
def _sort(work: Work, run: Run, queue: Indices, keys: NDArray[np.float64]) -> None:
    """Sorts the whole queue by a heap, the last of the order on top."""
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
            if below + 1 < end and _goes_before(
                work,
                run,
                np.int64(queue[below]),
                keys[below],
                np.int64(queue[below + 1]),
                keys[below + 1],
            ):
                below += 1
            if not _goes_before(work, run, job, key, np.int64(queue[below]), keys[below]):
                break
            queue[top], keys[top] = queue[below], keys[below]
            top = below
        queue[top], keys[top] = job, key


@njit_inlined
def _moving(
    layout: Layout, work: Work, run: Run, order: Order, job: int, now: int, total: float
) -> float:
    """The score of a waiting job under a rule; users have used ``total`` processor seconds."""
    status = run.status[0]
    index = status.first + job
    if is_overdue(run, order, job, now):
        return _OVERDUE
    if order.kind == FIXED or order.kind == CHANCE:
        return order.score[index]
    record = work.records[index]
    own, fair_share, bonus = layout.partition_set[record.partition], 1.0, 0.0
    free, units = run.set_free[own], layout.set_units[own]
    waited = float(now - run.eligible[job])
    if order.kind == PRIORITY:
        units, bonus = layout.total, order.bonus[index]
        if layout.max_age != AGE_S:  # a site may let age count for longer, or for less
            waited *= AGE_S / layout.max_age
        if total > 0:
            fair_share = 2.0 ** (-run.usage[record.user] / total * status.num_users)
    score = moving_score(
        order.kind,
        waited,
        record.order_estimate,
        work.demand[index],
        free,
        units,
        order.weights,
        fair_share,
    )
    return score - bonus


@njit_inlined
def _score_partition(
    layout: Layout, work: Work, run: Run, order: Order, part: int, now: int
) -> None:
    """Writes the scores of the jobs of one partition under a scorer."""
    status, mine, scoring = run.status[0], run.partitions[part], order.scoring
    own = layout.partition_set[part]
    free, units = run.set_free[own], layout.set_units[own]
    processors = float(units[0])
    recent = Recent(
        log=mine.log,
        deviation=deviation_of(mine.log, mine.log_square),
        area=mine.area,
        area_deviation=deviation_of(mine.area, mine.area_square),
        log_gap=mine.log_gap,
    )
    if scoring.bilinear:
        next_end, running_work, running_log = 0.0, 0.0, 0.0
        if mine.running > 0:
            place = status.running - 1
            while work.records[status.first + run.expected_jobs[place]].partition != part:
                place -= 1
            next_end = float(max(run.expected[place] - now, 0))
            left = mine.run_work - float(now) * mine.run_size
            running_work = max(left, 0.0) / processors
            running_log = mine.run_log / mine.running
        load = mine.work / processors / max(mine.gap, 1.0)
        situation = Situation(
            free=free[0] / processors,
            waiting=float(mine.waiting),
            queued_work=max(mine.queue_work, 0.0) / processors,
            next_end=next_end,
            queue_log=mine.queue_log / max(mine.waiting, 1),
            running_work=running_work,
            running=float(mine.running),
            running_log=running_log,
            load=math.log(max(load, 1e-6)),
        )
        describe_state(situation, recent.deviation, scoring.state)
    factors, share = weigh(scoring, recent, processors), 1.0 / max(float(free[0]), 1.0)
    for place in range(status.head, status.head + status.waiting):
        job = run.queue[place]
        index = status.first + job
        record = work.records[index]
        if record.partition != part:
            continue
        size, fits = float(work.demand[index, 0]), True
        lasting = float(record.order_estimate + now - run.eligible[job])
        score = score_job(factors, record.log, record.log_size, size, lasting, share)
        for r in range(free.size):
            fits = fits and work.demand[index, r] <= run.set_free[record.set, r]
        if fits:
            score += factors.fits
        run.keys[place] = _OVERDUE if is_overdue(run, order, job, now) else score
