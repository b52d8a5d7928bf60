"""Jobs after Lublin and Feitelson (*The workload on parallel supercomputers*, JPDC 2003).

Sizes, run times and arrivals are drawn as in the authors' program, with its constants: gamma(shape,
scale) throughout, logarithms to base e of seconds but for sizes, whose logarithms are to base 2.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit

_LONGEST_LOG_RUN = 12.0
_LONGEST_LOG_GAP = 13.0
_BUCKETS, _BUCKET_S = 48, 1800
_DAY_BEGINS = 11  # the first bucket of the fitted distribution over a day


@dataclass(frozen=True)
class JobType:
    """The constants of one stream of jobs, named as in the program.

    Attributes:
        serial: share of jobs on one processor.
        power_of_two: share of jobs on a power of two.
        u_low: log2 of the smallest parallel size; where the two-stage uniform distribution begins.
        u_medium: where its second stage begins.
        u_high: where it ends.
        u_first: probability of its first stage.
        short_run: gamma of ln(run time) of the first component.
        long_run: of the second.
        run_by_size: the first component's probability is this slope times the size plus this
            constant, within 0 and 1.
        gap: gamma of ln(seconds between arrivals).
        day: gamma of the half-hour of the day.
    """

    serial: float = 0.244
    power_of_two: float = 0.576
    u_low: float = 0.8
    u_medium: float = 4.5
    u_high: float = 7.0
    u_first: float = 0.86
    short_run: tuple[float, float] = (4.2, 0.94)
    long_run: tuple[float, float] = (312.0, 0.03)
    run_by_size: tuple[float, float] = (-0.0054, 0.78)
    gap: tuple[float, float] = (10.2303 * 1.0225, 0.4871)
    day: tuple[float, float] = (8.1737, 3.9631)

    def sized(self, processors: int, u_first: float | None = None) -> "JobType":
        """The same for a machine of at least 2 processors, maybe with another ``u_first``."""
        high = math.log2(processors)
        return replace(
            self,
            u_low=min(self.u_low, high),
            u_medium=max(high - 2.5, min(self.u_low, high)),
            u_high=high,
            u_first=self.u_first if u_first is None else u_first,
        )


ANY = JobType()
"""Jobs of one kind, on 128 processors."""

BATCH = JobType(
    *(0.2927, 0.6686, 1.2, 5.0, 7.0, 0.875),
    *((6.57, 0.823), (639.1, 0.0156), (-0.003, 0.6986)),
    *((6.0415 * 1.0519, 0.8531), (6.1271, 5.274)),
)
INTERACTIVE = JobType(
    *(0.1541, 0.625, 1.0, 3.0, 5.5, 0.705),
    *((3.8351, 0.6605), (7.073, 0.6856), (-0.0118, 0.9156)),
    *((6.551 * 0.9797, 0.6621), (8.9186, 3.668)),
)

_TYPED_U_LOW, _TYPED_U_FIRST = 0.8, 0.95


def types_for(processors: int, typed: bool) -> tuple[JobType, ...]:
    """The streams of jobs of a machine: one, or interactive and batch.

    With two types both have the sizes that sched-rl-gym gives them.
    """
    if not typed:
        return (ANY.sized(processors),)
    kinds = (replace(kind, u_low=_TYPED_U_LOW) for kind in (INTERACTIVE, BATCH))
    return tuple(kind.sized(processors, _TYPED_U_FIRST) for kind in kinds)


def draw_jobs(
    rng: np.random.Generator, num_jobs: int, types: tuple[JobType, ...], start_hour: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Draws arrivals and run times in seconds, processors and types, int64 ``(num_jobs,)``.

    The next job is that of the stream whose next arrival comes first. The types are indices of
    these streams. The clock begins at the start hour of the day.
    """
    # Each stream has enough arrivals to be the only one; of all, the first ones come.
    streams = [_arrivals(rng, num_jobs, kind, start_hour) for kind in types]
    kind = np.repeat(np.arange(len(types)), num_jobs)
    order = np.argsort(np.concatenate(streams), kind="stable")[:num_jobs]
    chosen, arrival = kind[order], np.concatenate(streams)[order]
    # Sizes first, because the chance of a short run depends on the size.
    run, size = np.empty(num_jobs, np.int64), np.empty(num_jobs, np.int64)
    for k, job_type in enumerate(types):
        of_type = chosen == k
        size[of_type] = _sizes(rng, int(of_type.sum()), job_type)
        run[of_type] = _runs(rng, size[of_type], job_type)
    return arrival, run, size, chosen.astype(np.int64)


def _sizes(rng: np.random.Generator, count: int, kind: JobType) -> NDArray[np.int64]:
    """Processors of some jobs: one, a power of two, or any number, by the first uniform."""
    which, stage, place = rng.random((3, count))
    # The logarithm is uniform in two stages: small jobs below, large ones above.
    first = stage <= kind.u_first
    low = np.where(first, kind.u_low, kind.u_medium)
    high = np.where(first, kind.u_medium, kind.u_high)
    log = low + (high - low) * place
    # Whole logarithms are powers of two.
    log = np.where(which <= kind.serial + kind.power_of_two, np.floor(log + 0.5), log)
    size = np.floor(2.0**log + 0.5).astype(np.int64)
    most = round(2.0**kind.u_high)
    return np.where(which <= kind.serial, 1, np.minimum(size, most))


def _runs(rng: np.random.Generator, size: NDArray[np.int64], kind: JobType) -> NDArray[np.int64]:
    """Run times in seconds, hyper-gamma: wide jobs are more often long."""
    slope, constant = kind.run_by_size
    share = np.clip(slope * size + constant, 0, 1)
    log = np.full(size.size, np.inf)
    # What is longer than the program allows is drawn anew, until nothing is.
    while (redrawn := np.flatnonzero(log > _LONGEST_LOG_RUN)).size:
        short = rng.random(redrawn.size) <= share[redrawn]
        # Both components are drawn for every job, and one is taken.
        drawn = rng.gamma(*kind.short_run, redrawn.size), rng.gamma(*kind.long_run, redrawn.size)
        log[redrawn] = np.where(short, *drawn)
    return np.maximum(np.floor(np.exp(log)), 1).astype(np.int64)


def _arrivals(
    rng: np.random.Generator, count: int, kind: JobType, start_hour: float
) -> NDArray[np.int64]:
    """Seconds of arrival: gaps as they would be in an even day, then spread over real ones."""
    log = np.full(count, np.inf)
    while (redrawn := np.flatnonzero(log > _LONGEST_LOG_GAP)).size:
        log[redrawn] = rng.gamma(*kind.gap, redrawn.size)
    begin = int(start_hour * 3600) // _BUCKET_S % _BUCKETS
    return _pass_through_days(np.exp(log) / _BUCKET_S, _day_weights(*kind.day), begin)


def pass_through_days(
    gaps: NDArray[np.float64], start_hour: float, depth: float
) -> NDArray[np.int64]:
    """Times of arrivals whose gaps take longer in quiet hours, as those of this model.

    The gaps are seconds without a daily cycle, ``(num_jobs,)``. The depth is 0 for no cycle and 1
    for that of the model. Seconds, int64 ``(num_jobs,)``; the mean rate of whole days is that of
    the gaps.
    """
    begin = int(start_hour * 3600) // _BUCKET_S % _BUCKETS
    weights = 1 + depth * (_day_weights(*ANY.day) - 1)
    return _pass_through_days(gaps / _BUCKET_S, weights, begin)


@lru_cache
def _day_weights(shape: float, scale: float) -> NDArray[np.float64]:
    """How busy each half-hour of the day is, 1 on average; from midnight on."""
    hours = np.arange(_DAY_BEGINS, _DAY_BEGINS + _BUCKETS)
    from scipy.stats import gamma  # takes half a second, so not for those who only read a config

    # The fit begins at the eleventh bucket of a day and runs into the next one.
    ends = gamma.cdf((hours[:, None] + [-0.5, 0.5]), shape, scale=scale)
    weights = np.empty(_BUCKETS)
    weights[(hours - 1) % _BUCKETS] = ends[:, 1] - ends[:, 0]
    return weights / weights.mean()


@njit(cache=True)
def _pass_through_days(
    points: NDArray[np.float64], weights: NDArray[np.float64], bucket: int
) -> NDArray[np.int64]:
    """Times of arrivals whose gaps take longer in quiet hours; the clock is cut to seconds."""
    times = np.empty(points.size, np.int64)
    time, rest, before = 0.0, 0.0, 0.0
    for k in range(points.size):
        # The gap uses up the buckets that it passes: a quiet half-hour has a small weight.
        rest += points[k]
        while rest > weights[bucket]:
            rest -= weights[bucket]
            bucket = (bucket + 1) % weights.size
            time += 1800.0
        # How far into this bucket it reaches, less how far the one before had reached into its own.
        part = rest / weights[bucket]
        time = math.floor(time + 1800.0 * (part - before))
        before = part
        times[k] = time
    return times
