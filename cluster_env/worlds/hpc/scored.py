"""Whole episodes under a scorer, without a decision that leaves compiled code.

An event costs as much as the jobs that are scored at it: none if the narrowest waiting job does not
fit, those that fit in the modes that skip, and all that wait where the first of them counts.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import Jobs, fits, forget, pop, raise_outlived, reserve
from cluster_env.worlds.hpc.passes import HEAD, RUNNING, SMALLEST, TAIL, Episode, begin, may_start
from cluster_env.worlds.hpc.play import Room, begin_episode
from cluster_env.worlds.hpc.rules import Compiled
from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION, SIZE
from cluster_env.worlds.hpc.step import (
    AREA,
    AREA_SQUARE,
    GAP,
    LOAD_AREA,
    LOAD_GAP,
    LOG,
    LOG_SQUARE,
    NUM_SUMS,
    QUEUE_LOG,
    QUEUE_WORK,
    RUN_LOG,
    RUN_SIZE,
    RUN_WORK,
    note_arrival,
)

STRICT, SKIP, EASY, GATE, GATED_EASY = range(5)  # places in `scorer.MODES`
ALL, FITTING, BACKFILLING = range(3)

_NEVER = 2**62
_NONE = -1
_WIDEST = 2**31 - 1
_LOG_2 = math.log(2.0)

# Numbers that a decision takes from weights and state, so that a job's score is a short sum.
_OF_LOG, _OF_LOG_SIZE, _OF_WAIT, _OF_SIZE, _OF_FREE, _IF_FITS, _CONSTANT = range(7)


class Scoring(NamedTuple):
    """A scorer, and what it works with."""

    weights: NDArray[np.float64]  # (SIZE, SIZE)
    mode: int
    bilinear: bool
    log: NDArray[np.float64]  # (num_jobs,), ln(estimate) of all jobs that are loaded
    log_size: NDArray[np.float64]  # (num_jobs,), ln(processors)
    sums: NDArray[np.float64]  # (NUM_SUMS,), as of `cluster_env.worlds.hpc.step.Rows`
    state: NDArray[np.float64]  # (SIZE,), features of the state and 1
    job: NDArray[np.float64]  # (SIZE,), what each feature of a job counts
    short: NDArray[np.float64]  # (7,)
    best: NDArray[np.float64]  # (1,), the lowest score


def make_scoring(
    weights: NDArray[np.float64],
    mode: int,
    bilinear: bool,
    log: NDArray[np.float64],
    log_size: NDArray[np.float64],
) -> Scoring:
    """A scorer with room to work in; see `Scoring`."""
    return Scoring(
        np.ascontiguousarray(weights, np.float64),
        mode,
        bilinear,
        log,
        log_size,
        np.zeros(NUM_SUMS),
        np.ones(SIZE),
        np.zeros(SIZE),
        np.zeros(7),
        np.zeros(1),
    )


@njit_kernel
def play_scored(
    jobs: Jobs,
    jobset: NDArray[np.int32],
    capacity: NDArray[np.int64],
    scoring: Scoring,
    rule: Compiled,
    max_time: int,
    room: Room,
    start: NDArray[np.int64],
    place: NDArray[np.int64],
    end: NDArray[np.int64],
    truncated: NDArray[np.bool_],
) -> None:
    """Plays one episode after the other; see `cluster_env.worlds.hpc.play.play_all`."""
    for e in range(jobset.size):
        first, last = jobs.first[jobset[e]], jobs.first[jobset[e] + 1]
        own = start[place[e] : place[e] + last - first]
        it = begin_episode(jobs, first, last, capacity, rule, room, own)
        end[e] = _play(it, scoring, first, max_time)
        truncated[e] = end[e] > max_time
        end[e] = min(end[e], max_time)


@njit_inlined
def _play(it: Episode, scoring: Scoring, first: int, max_time: int) -> int:
    """Plays an episode; returns the clock at its end, above `max_time` if it has to be cut."""
    num_jobs, sums = it.arrival.size, scoring.sums
    for k in range(sums.size):
        sums[k] = 0.0
    now, coming = int(np.int64(0)), int(np.int64(0))
    while coming < num_jobs or it.sizes[RUNNING] > 0:
        now = int(it.arrival[coming]) if coming < num_jobs else _NEVER
        if it.sizes[RUNNING] > 0:
            now = min(now, it.ends[0])
        if now > max_time:
            break
        _finish(it, scoring, first, now)
        while coming < num_jobs and it.arrival[coming] == now:
            _arrive(it, scoring, first, coming, now)
            coming += 1
        _decide(it, scoring, first, now)
    return now


@njit_inlined
def _finish(it: Episode, scoring: Scoring, first: int, now: int) -> None:
    """Lets the jobs finish whose time it is, and moves expected ends that have passed."""
    sums = scoring.sums
    while it.sizes[RUNNING] > 0 and it.ends[0] == now:
        job = pop(it.ends, it.running, it.sizes[RUNNING])
        planned = forget(it.expected, it.expected_jobs, it.sizes[RUNNING], job)
        it.sizes[RUNNING] -= 1
        sums[RUN_LOG] -= scoring.log[first + job]
        sums[RUN_WORK] -= float(planned) * it.demand[job, 0]
        sums[RUN_SIZE] -= it.demand[job, 0]
        for r in range(it.free.size):
            it.free[r] += it.demand[job, r]
    count = it.sizes[RUNNING]
    if count > 0 and it.expected[count - 1] <= now:
        sums[RUN_WORK] += raise_outlived(
            it.expected, it.expected_jobs, count, now, it.start, it.limit, it.demand
        )


@njit_inlined
def _arrive(it: Episode, scoring: Scoring, first: int, job: int, now: int) -> None:
    """Lets a job wait behind those that came before."""
    size = it.demand[job, 0]
    tail = it.sizes[TAIL]
    it.queue[tail], it.widths[tail] = job, size
    it.sizes[TAIL] = tail + 1
    it.sizes[SMALLEST] = min(it.sizes[SMALLEST], size)
    note_arrival(scoring.sums, now, it.order_estimate[job], size, scoring.log[first + job])


@njit_inlined
def _decide(it: Episode, scoring: Scoring, first: int, now: int) -> None:
    """Starts jobs, one after the other, until the scorer holds the rest or none may start."""
    mode = scoring.mode
    holds = mode >= GATE
    chosen = FITTING if mode in (SKIP, GATE) else ALL
    blocked, shadow = np.int64(_NONE), np.int64(0)
    # Nothing starts where the narrowest does not fit, whatever the scores are.
    while it.sizes[TAIL] > it.sizes[HEAD] and it.free[0] >= it.sizes[SMALLEST]:
        _weigh(it, scoring, now)
        place = _best(it, scoring, first, chosen, blocked, shadow, now)
        alone = it.sizes[RUNNING] == 0
        if place == _NONE or (holds and not alone and not scoring.best[0] < 0.0):
            break
        job = it.queue[place]
        if chosen == ALL and not fits(it.demand, job, it.free):
            if mode == STRICT:
                break
            shadow = reserve(
                it.expected,
                it.expected_jobs,
                it.sizes[RUNNING],
                it.demand,
                job,
                now,
                it.free,
                it.spare,
            )
            chosen, blocked = BACKFILLING, np.int64(job)
            continue
        if chosen == BACKFILLING:
            may_start(it, job, now, shadow, True)  # takes what is spare
        _start(it, scoring, first, place, now)


@njit_inlined
def _start(it: Episode, scoring: Scoring, first: int, place: int, now: int) -> None:
    """Starts the job at a place of the queue, which keeps its order."""
    job, sums = it.queue[place], scoring.sums
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    if place - head < tail - place:
        for k in range(place, head, -1):
            it.queue[k], it.widths[k] = it.queue[k - 1], it.widths[k - 1]
        it.sizes[HEAD] = head + 1
    else:
        for k in range(place, tail - 1):
            it.queue[k], it.widths[k] = it.queue[k + 1], it.widths[k + 1]
        it.sizes[TAIL] = tail - 1
    begin(it, job, now, True)
    log, size = scoring.log[first + job], it.demand[job, 0]
    sums[QUEUE_LOG] -= log
    sums[QUEUE_WORK] -= float(it.order_estimate[job]) * size
    sums[RUN_LOG] += log
    sums[RUN_WORK] += float(now + it.estimate[job]) * size
    sums[RUN_SIZE] += size


@njit_inlined
def _weigh(it: Episode, scoring: Scoring, now: int) -> None:
    """Works out what counts of a job in this state, so that its score is a short sum."""
    weights, sums, short, w = scoring.weights, scoring.sums, scoring.short, scoring.job
    last = SIZE - 1
    if scoring.mode >= GATE or scoring.bilinear:  # else the state moves all scores alike
        _describe_state(it, sums, scoring.state, now)
    for row in range(SIZE):
        w[row] = weights[row, last]
        if scoring.bilinear or row == last:
            for column in range(last):
                w[row] += weights[row, column] * scoring.state[column]
    processors = float(it.capacity[0])
    log_processors = math.log(processors)
    of_estimate = w[3] / _deviation(sums[LOG], sums[LOG_SQUARE])
    of_area = w[8] / _deviation(sums[AREA], sums[AREA_SQUARE])
    # By the order of `scorer.JOB_FEATURES`; ln(1 + waited / estimate), the fifth, is the difference
    # of ln(estimate + waited) and ln(estimate).
    short[_OF_LOG] = (w[0] - w[4] + w[9]) / 4.0 + of_estimate + of_area
    short[_OF_LOG_SIZE] = w[1] / 4.0 + w[2] / max(log_processors, _LOG_2) + of_area
    short[_OF_WAIT] = w[4] / 4.0
    short[_OF_SIZE] = w[5] / processors
    short[_OF_FREE], short[_IF_FITS] = w[6], w[7]
    means = w[1] * log_processors + w[9] * sums[GAP]
    short[_CONSTANT] = w[last] - means / 4.0 - of_estimate * sums[LOG] - of_area * sums[AREA]


@njit_inlined
def _deviation(mean: float, square: float) -> float:
    return max(math.sqrt(max(square - mean * mean, 0.0)), LEAST_DEVIATION)


@njit_inlined
def _describe_state(
    it: Episode, sums: NDArray[np.float64], out: NDArray[np.float64], now: int
) -> None:
    """Fills the features of the state; see `scorer.STATE_FEATURES`."""
    processors = float(it.capacity[0])
    waiting, running = it.sizes[TAIL] - it.sizes[HEAD], it.sizes[RUNNING]
    out[0] = it.free[0] / processors
    out[1] = math.log(1.0 + waiting) / 4.0
    out[2] = math.log(1.0 + max(sums[QUEUE_WORK], 0.0) / processors) / 8.0
    out[4] = sums[QUEUE_LOG] / max(waiting, 1) / 4.0
    out[3] = out[5] = out[7] = 0.0
    if running > 0:
        out[3] = math.log(1.0 + max(it.expected[running - 1] - now, 0)) / 8.0
        left = sums[RUN_WORK] - float(now) * sums[RUN_SIZE]
        out[5] = math.log(1.0 + max(left, 0.0) / processors) / 8.0
        out[7] = sums[RUN_LOG] / running / 4.0
    out[6] = math.log(1.0 + running) / 4.0
    load = sums[LOAD_AREA] / processors / max(sums[LOAD_GAP], 1.0)
    out[8] = math.log(max(load, 1e-6)) / 2.0
    out[9] = _deviation(sums[LOG], sums[LOG_SQUARE]) / 2.0


@njit_inlined
def _best(
    it: Episode, scoring: Scoring, first: int, chosen: int, blocked: int, shadow: int, now: int
) -> int:
    """Place of the job with the lowest score among those that are chosen; -1 if there is none."""
    short, log, log_size = scoring.short, scoring.log, scoring.log_size
    of_log, of_log_size = short[_OF_LOG], short[_OF_LOG_SIZE]
    of_wait, of_size, constant = short[_OF_WAIT], short[_OF_SIZE], short[_CONSTANT]
    of_free, if_fits = short[_OF_FREE], short[_IF_FITS]
    free, share = it.free[0], 1.0 / max(float(it.free[0]), 1.0)
    smallest = np.int64(_WIDEST)
    found, lowest = np.int64(_NONE), np.inf
    for place in range(it.sizes[HEAD], it.sizes[TAIL]):
        width = np.int64(it.widths[place])
        smallest = min(smallest, width)
        if chosen != ALL and width > free:
            continue
        job = it.queue[place]
        if chosen == FITTING and not fits(it.demand, job, it.free):
            continue
        if chosen == BACKFILLING and not _backfills(it, job, blocked, shadow, now):
            continue
        score = constant + of_log * log[first + job] + of_log_size * log_size[first + job]
        score += of_size * width
        if of_wait != 0.0:
            score += of_wait * math.log(float(it.order_estimate[job] + now - it.arrival[job]))
        if of_free != 0.0:
            score += of_free * min(width * share, 2.0)
        if if_fits != 0.0 and (chosen != ALL or fits(it.demand, job, it.free)):
            score += if_fits
        if score < lowest:
            found, lowest = np.int64(place), score
    it.sizes[SMALLEST] = smallest
    scoring.best[0] = lowest
    return int(found)


@njit_inlined
def _backfills(it: Episode, job: int, blocked: int, shadow: int, now: int) -> bool:
    """Whether a job fits and does not delay the one that has the reservation."""
    if job == blocked or not fits(it.demand, job, it.free):
        return False
    return bool(now + it.order_estimate[job] <= shadow or fits(it.demand, job, it.spare))
