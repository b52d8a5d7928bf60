"""Means with 95 % intervals, over jobsets and over training seeds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 2000
_BOOTSTRAP_SEED = 20160909
_BATCH = 100

Unit = Literal["jobsets", "seeds and jobsets", "nothing"]
Columns = tuple[NDArray[np.float64], ...]


@dataclass(frozen=True)
class Estimate:
    """A mean and the interval that it lies in.

    Attributes:
        value: the mean; NaN if there was nothing to average.
        low: lower end of the 95 % interval; NaN if there are too few units for one.
        high: upper end.
        over: what the interval varies. ``jobsets``: what other jobsets of the same workload would
            have given, by bootstrap, or by `overlapping_interval` where they share jobs. ``seeds
            and jobsets``: what other training seeds on other jobsets would have given, see
            `two_level_interval`. ``nothing``: no interval.
    """

    value: float
    low: float
    high: float
    over: Unit


def jobset_interval(
    totals: NDArray[np.float64], counts: NDArray[np.float64], num_disjoint: int | None = None
) -> Estimate:
    """Mean of pooled values, with a percentile bootstrap over jobsets.

    The mean is the ratio of two sums, so a resampled jobset brings both its total and its count.
    Jobsets without values carry no information about the mean and are left out.

    Args:
        totals: sum of the values of each jobset, float64 ``(num_jobsets,)``.
        counts: how many values that were, float64 ``(num_jobsets,)``.
        num_disjoint: how many jobsets fit side by side into the log that all are windows of; none
            if they are drawn one by one. See `overlapping_interval`.
    """
    filled = counts > 0
    totals, counts = totals[filled], counts[filled]
    if totals.size == 0:
        return Estimate(np.nan, np.nan, np.nan, "nothing")
    value = float(totals.sum() / counts.sum())
    if num_disjoint is not None:
        return overlapping_interval(value, _influence(totals, counts), num_disjoint)
    if totals.size == 1:
        return Estimate(value, np.nan, np.nan, "nothing")
    low, high = _bootstrap((totals, counts), _ratio)
    return Estimate(value, low, high, "jobsets")


def overlapping_interval(
    value: float, influence: NDArray[np.float64], num_disjoint: int
) -> Estimate:
    """The 95 % interval of a mean over windows of one log, which share jobs.

    A thousand windows know no more than the log does. With k windows side by side, the variance of
    the mean over all windows of a log is that of a single one within it, s^2, divided by k - 1:
    overlapping batch means, Meketon and Schmeiser, "Overlapping batch means: something for
    nothing?", WSC 1984. As n windows are drawn at random from these, s^2 / n is added. The interval
    is Student's with k - 1 degrees of freedom, or n - 1 if that is less; overlapping batches
    deserve up to half as many more. Windows count as independent once they share no job, so they
    should last many times as long as a queue remembers.

    Args:
        value: the mean.
        influence: by how much each window moves it, times their number, float64
            ``(num_windows,)``; of a plain mean, the window's value minus the mean.
        num_disjoint: windows that fit side by side into the log, sharing no job.
    """
    fewest = min(num_disjoint, influence.size)
    if fewest < 2:
        return Estimate(value, np.nan, np.nan, "nothing")
    variance = float(influence.var(ddof=1)) * (1 / influence.size + 1 / (num_disjoint - 1))
    half = _t(fewest - 1) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, "jobsets")


def difference_interval(
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    other_totals: NDArray[np.float64],
    other_counts: NDArray[np.float64],
    num_disjoint: int | None = None,
) -> Estimate:
    """Difference of two pooled means over the same jobsets, in pairs.

    Args:
        totals: as in `jobset_interval`.
        counts: likewise.
        other_totals: those of the policy that is subtracted, for the same jobsets.
        other_counts: likewise.
        num_disjoint: as in `jobset_interval`.
    """
    data = (totals, counts, other_totals, other_counts)
    if num_disjoint is None:
        return _paired(data, _ratio_difference)
    one, ones, two, twos = _in_both(data)
    if not one.size:
        return Estimate(np.nan, np.nan, np.nan, "nothing")
    influence = _influence(one, ones) - _influence(two, twos)
    value = float(_ratio_difference(one, ones, two, twos))
    return overlapping_interval(value, influence, num_disjoint)


def ratio_interval(
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    other_totals: NDArray[np.float64],
    other_counts: NDArray[np.float64],
) -> Estimate:
    """Quotient of two pooled means over the same jobsets, bootstrapped in pairs.

    Args:
        totals: as in `jobset_interval`.
        counts: likewise.
        other_totals: those of what the mean is divided by, for the same jobsets, all above 0.
        other_counts: likewise.
    """
    return _paired((totals, counts, other_totals, other_counts), _ratio_quotient)


def two_level_interval(
    seed_means: Sequence[Sequence[float]], within: Estimate, num_jobsets: int
) -> Estimate:
    """A mean over training seeds, or the difference of two, with an interval over both levels.

    All seeds are evaluated on the same jobsets. The variance is the sum of two parts: over seeds,
    the variance of the seeds' means divided by their number, and over jobsets, that of the mean
    over all seeds. What a seed and a jobset have in common is in both, so that the interval is a
    little too wide rather than too narrow. It is Student's, with the degrees of freedom of Welch
    and Satterthwaite: with few seeds that disagree, it is as wide as so few seeds deserve.

    Args:
        seed_means: the mean of each training run; one list, or two of which the second is
            subtracted. A list of a single mean has no variance over seeds.
        within: the same mean or difference with all seeds pooled, and its interval over jobsets.
        num_jobsets: how many jobsets that interval rests on.
    """
    groups = [np.asarray(means, np.float64) for means in seed_means]
    value = float(groups[0].mean() - (groups[1].mean() if len(groups) > 1 else 0.0))
    if np.isnan(value) or np.isnan(within.low):
        return Estimate(value, np.nan, np.nan, "nothing")
    parts = [(float(g.var(ddof=1)) / g.size, g.size - 1) for g in groups if g.size > 1]
    half_within = (within.high - within.low) / 2
    parts.append(((half_within / _t(num_jobsets - 1)) ** 2, num_jobsets - 1))
    variance = sum(part for part, _ in parts)
    if variance == 0.0:
        return Estimate(value, value, value, "seeds and jobsets")
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    half = _t(freedom) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, "seeds and jobsets")


def _t(freedom: float) -> float:
    from scipy import stats  # takes half a second, so not for those who only read a config

    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom))


def _influence(totals: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each jobset moves a ratio of sums, times their number, to first order."""
    return (totals - counts * (totals.sum() / counts.sum())) / counts.mean()


def _ratio(
    totals: NDArray[np.float64], counts: NDArray[np.float64], axis: int = -1
) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = totals.sum(axis=axis) / counts.sum(axis=axis)
    return ratio


def _ratio_difference(
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    other_totals: NDArray[np.float64],
    other_counts: NDArray[np.float64],
    axis: int = -1,
) -> NDArray[np.float64]:
    return _ratio(totals, counts, axis) - _ratio(other_totals, other_counts, axis)


def _ratio_quotient(
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    other_totals: NDArray[np.float64],
    other_counts: NDArray[np.float64],
    axis: int = -1,
) -> NDArray[np.float64]:
    quotient: NDArray[np.float64] = _ratio(totals, counts, axis) / _ratio(
        other_totals, other_counts, axis
    )
    return quotient


def _in_both(data: Columns) -> Columns:
    """Two policies' totals and counts, of the jobsets in which both have jobs."""
    filled = (data[1] > 0) & (data[3] > 0)
    return tuple(column[filled] for column in data)


def _paired(data: Columns, statistic: Callable[..., NDArray[np.float64]]) -> Estimate:
    """A statistic of two policies' totals and counts, over the jobsets in which both have jobs."""
    data = _in_both(data)
    if not data[0].size:
        return Estimate(np.nan, np.nan, np.nan, "nothing")
    value = float(statistic(*data))
    if data[0].size == 1:
        return Estimate(value, np.nan, np.nan, "nothing")
    low, high = _bootstrap(data, statistic)
    return Estimate(value, low, high, "jobsets")


def _bootstrap(data: Columns, statistic: object) -> tuple[float, float]:
    from scipy import stats

    result = stats.bootstrap(
        data,
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_BOOTSTRAP_SEED),
    )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)
