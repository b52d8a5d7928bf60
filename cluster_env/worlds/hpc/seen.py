"""What a scorer sees, and what it makes of it: the situation, recent arrivals, and scores.

The same for a pool, for each partition of a site, and for bare states.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.jobs import Records
from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION, SIZE, Scorer

_LOG_2 = math.log(2.0)


class Scoring(NamedTuple):
    """A scorer, and room to work in."""

    weights: NDArray[np.float64]  # (SIZE, SIZE)
    bilinear: bool  # whether what counts of a job depends on the state
    state: NDArray[np.float64]  # (SIZE,), features of the state and 1
    job: NDArray[np.float64]  # (SIZE,), what each feature of a job counts

    @classmethod
    def of(cls, scorer: Scorer) -> "Scoring":
        """A scorer, with the room."""
        weights = np.ascontiguousarray(scorer.weights, np.float64)
        return cls(weights, scorer.is_bilinear, np.ones(SIZE), np.zeros(SIZE))


class Situation(NamedTuple):
    """What a scorer sees of machine and queue, before it is brought to scale."""

    free: float  # share of the processors
    waiting: float  # jobs
    queued_work: float  # seconds of the whole machine
    next_end: float  # seconds
    queue_log: float  # mean of ln(estimate)
    running_work: float  # seconds of the whole machine
    running: float  # jobs
    running_log: float  # mean of ln(estimate)
    load: float  # ln of it


class Recent(NamedTuple):
    """What a scorer sees of the last arrivals, before it is brought to scale."""

    log: float  # mean of ln(estimate)
    deviation: float
    area: float  # mean of ln(estimate x processors)
    area_deviation: float
    log_gap: float  # mean of ln(1 + seconds between them)


class Factors(NamedTuple):
    """Numbers that a decision takes from weights and state, so that a score is a short sum."""

    log: float  # of ln(estimate)
    log_size: float  # of ln(processors)
    wait: float  # of ln(estimate + waited)
    size: float  # of processors
    of_free: float
    fits: float
    constant: float


@njit_inlined
def deviation_of(mean: float, square: float) -> float:
    """A standard deviation from the means of values and of their squares."""
    return max(math.sqrt(max(square - mean * mean, 0.0)), LEAST_DEVIATION)


@njit_inlined
def describe_state(seen: Situation, deviation: float, out: NDArray[np.float64]) -> None:
    """Writes the features of the state, in the order of `scorer.STATE_FEATURES`."""
    values = (
        seen.free,
        math.log(1.0 + seen.waiting) / 4.0,
        math.log(1.0 + seen.queued_work) / 8.0,
        math.log(1.0 + seen.next_end) / 8.0,
        seen.queue_log / 4.0,
        math.log(1.0 + seen.running_work) / 8.0,
        math.log(1.0 + seen.running) / 4.0,
        seen.running_log / 4.0,
        seen.load / 2.0,
        deviation / 2.0,
    )
    for column in range(len(values)):
        out[column] = values[column]


@njit_inlined
def weigh(scoring: Scoring, recent: Recent, processors: float) -> Factors:
    """Works out what counts of a job, so that its score is a short sum."""
    weights, w, last = scoring.weights, scoring.job, SIZE - 1
    for row in range(SIZE):
        w[row] = weights[row, last]
        if scoring.bilinear or row == last:
            for column in range(last):
                w[row] += weights[row, column] * scoring.state[column]
    # What each feature of a job counts, in the order of `scorer.JOB_FEATURES`; the logarithm of
    # 1 + waited / estimate is the difference of those of estimate + waited and of the estimate.
    log_estimate, log_share, log_size, relative_estimate, stretch = w[0], w[1], w[2], w[3], w[4]
    share, of_free, fit, relative_area, log_gaps = w[5], w[6], w[7], w[8], w[9]
    log_processors = math.log(processors)
    of_estimate = relative_estimate / recent.deviation
    of_area = relative_area / recent.area_deviation
    means = log_share * log_processors + log_gaps * recent.log_gap
    return Factors(
        log=(log_estimate - stretch + log_gaps) / 4.0 + of_estimate + of_area,
        log_size=log_share / 4.0 + log_size / max(log_processors, _LOG_2) + of_area,
        wait=stretch / 4.0,
        size=share / processors,
        of_free=of_free,
        fits=fit,
        constant=w[last] - means / 4.0 - of_estimate * recent.log - of_area * recent.area,
    )


@njit_inlined
def score_job(
    factors: Factors, log: float, log_size: float, size: float, lasting: float, share: float
) -> float:
    """The score of a job, but for whether it fits.

    ``lasting`` is the seconds that it has waited, and its estimate; ``share`` 1 over the free
    processors.
    """
    score = factors.constant + factors.log * log + factors.log_size * log_size
    score += factors.size * size
    if factors.wait != 0.0:
        score += factors.wait * math.log(lasting)
    if factors.of_free != 0.0:
        score += factors.of_free * min(size * share, 2.0)
    return score


@njit_inlined
def look_at(
    scoring: Scoring,
    sums: Records,
    now: int,
    free: float,
    processors: float,
    waiting: int,
    running: int,
    next_end: float,
) -> Factors:
    """Looks at a machine, and works out what counts of a job.

    Of processors some are free; so many jobs wait and run, and the next is expected to end in
    ``next_end`` seconds. The sums are those of `cluster_env.worlds.hpc.events.SUMS`.
    """
    recent = Recent(
        log=sums.log,
        deviation=deviation_of(sums.log, sums.log_square),
        area=sums.area,
        area_deviation=deviation_of(sums.area, sums.area_square),
        log_gap=sums.log_gap,
    )
    # What the state adds by itself is the same for all jobs.
    if scoring.bilinear:
        left = sums.run_work - float(now) * sums.run_size
        load = sums.work / processors / max(sums.gap, 1.0)
        situation = Situation(
            free=free / processors,
            waiting=float(waiting),
            queued_work=max(sums.queue_work, 0.0) / processors,
            next_end=next_end,
            queue_log=sums.queue_log / max(waiting, 1),
            running_work=max(left, 0.0) / processors if running > 0 else 0.0,
            running=float(running),
            running_log=sums.run_log / running if running > 0 else 0.0,
            load=math.log(max(load, 1e-6)),
        )
        describe_state(situation, recent.deviation, scoring.state)
    return weigh(scoring, recent, processors)
