"""Means with 95 % intervals, over jobsets and over training seeds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import sub, truediv
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 2000
_BOOTSTRAP_SEED = 20160909
_BATCH = 100

Unit = Literal["jobsets", "seeds and jobsets", "nothing"]


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


@dataclass(frozen=True, eq=False)
class Pooled:
    """A policy's values by jobset, as their sums and numbers; its mean is the ratio of the two.

    Both are float64 ``(num_jobsets,)``; a jobset with 0 values carries no information about the
    mean.
    """

    totals: NDArray[np.float64]
    counts: NDArray[np.float64]

    @classmethod
    def each(cls, values: NDArray[np.float64]) -> "Pooled":
        """One value for each jobset."""
        return cls(values, np.ones(values.size))

    @property
    def size(self) -> int:
        """Number of jobsets."""
        return int(self.totals.size)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Which jobsets have values, bool ``(num_jobsets,)``."""
        return np.asarray(self.counts > 0)

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return float(self.totals.sum() / self.counts.sum())

    @property
    def influence(self) -> NDArray[np.float64]:
        """By how much each jobset moves the mean, times their number, to first order."""
        mean = self.totals.sum() / self.counts.sum()
        return np.asarray((self.totals - self.counts * mean) / self.counts.mean(), np.float64)

    def select(self, jobsets: NDArray[np.bool_]) -> "Pooled":
        """The same of some jobsets, by a mask."""
        return Pooled(self.totals[jobsets], self.counts[jobsets])


def jobset_interval(values: Pooled, num_disjoint: int | None = None) -> Estimate:
    """Mean of pooled values, with a percentile bootstrap over jobsets.

    The mean is the ratio of two sums, so a resampled jobset brings both its total and its count.
    Jobsets that are windows of one log, ``num_disjoint`` of which fit side by side, have the
    `overlapping_interval`.
    """
    values = values.select(values.filled)
    if values.size and num_disjoint is not None:
        return overlapping_interval(values.mean, values.influence, num_disjoint)
    return _bootstrapped((values,), lambda mean: mean)


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
    values: Pooled, others: Pooled, num_disjoint: int | None = None
) -> Estimate:
    """Difference of two pooled means over the same jobsets, in pairs; see `jobset_interval`."""
    one, two = in_both(values, others)
    if one.size and num_disjoint is not None:
        influence = one.influence - two.influence
        return overlapping_interval(one.mean - two.mean, influence, num_disjoint)
    return _bootstrapped((one, two), sub)


def ratio_interval(values: Pooled, others: Pooled) -> Estimate:
    """Quotient of two pooled means over the same jobsets, bootstrapped in pairs.

    The others must all be above 0.
    """
    return _bootstrapped(in_both(values, others), truediv)


def in_both(values: Pooled, others: Pooled) -> tuple[Pooled, Pooled]:
    """Two policies' values of the jobsets in which both have any."""
    filled = values.filled & others.filled
    return values.select(filled), others.select(filled)


def two_level_interval(
    seed_means: Sequence[Sequence[float]], within: Estimate, num_jobsets: int
) -> Estimate:
    """A mean over training seeds, or the difference of two, with an interval over both levels.

    All seeds are evaluated on the same jobsets. The variance is the sum of two parts: over seeds,
    the variance of the seeds' means divided by their number, and over jobsets, that of the mean
    over all seeds. What a seed and a jobset have in common is in both, so that the interval is a
    little too wide rather than too narrow. It is Student's, with the degrees of freedom of Welch
    and Satterthwaite: with few seeds that disagree, it is as wide as so few seeds deserve.

    The means of training runs are one list, or two of which the second is subtracted; a single
    mean has no variance over seeds. ``within`` has all seeds pooled, and rests on `num_jobsets`.
    """
    groups = [np.asarray(means, np.float64) for means in seed_means]
    value = float(groups[0].mean() - (groups[1].mean() if len(groups) > 1 else 0.0))
    if np.isnan(value) or np.isnan(within.low):
        return Estimate(value, np.nan, np.nan, "nothing")
    # Variances with their degrees of freedom: over the seeds of each side, and over jobsets.
    parts = [(float(g.var(ddof=1)) / g.size, g.size - 1) for g in groups if g.size > 1]
    half_within = (within.high - within.low) / 2
    parts.append(((half_within / _t(num_jobsets - 1)) ** 2, num_jobsets - 1))
    variance = sum(part for part, _ in parts)
    if variance == 0.0:
        return Estimate(value, value, value, "seeds and jobsets")
    # Degrees of freedom of a sum of variances, after Welch and Satterthwaite.
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    half = _t(freedom) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, "seeds and jobsets")


def seeds_interval(
    values: NDArray[np.float64], others: NDArray[np.float64] | None = None
) -> Estimate:
    """A mean over training seeds and jobsets or tasks, or the difference of two on the same ones.

    Args:
        values: float64 ``(num_seeds, num_jobsets)``.
        others: what is subtracted, float64 ``(num_other_seeds, num_jobsets)``.

    Returns:
        The mean with its `two_level_interval`, or with the bootstrap over jobsets where there is
        one seed of each.
    """
    pooled = values.mean(axis=0) - (0.0 if others is None else others.mean(axis=0))
    within = jobset_interval(Pooled.each(pooled))
    groups = [values] if others is None else [values, others]
    if all(group.shape[0] == 1 for group in groups):
        return within
    means = [group.mean(axis=1).tolist() for group in groups]
    return two_level_interval(means, within, pooled.size)


def _t(freedom: float) -> float:
    from scipy import stats  # takes half a second, so not for those who only read a config

    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom))


def _bootstrapped(sides: Sequence[Pooled], combine: Callable[..., Any]) -> Estimate:
    """What is made of the means of one or two policies, with its interval over jobsets.

    All jobsets have values of each policy, and ``combine`` takes the policies' means.
    """
    num_jobsets = sides[0].size
    if not num_jobsets:
        return Estimate(np.nan, np.nan, np.nan, "nothing")
    value = float(combine(*(side.mean for side in sides)))
    if num_jobsets == 1:
        return Estimate(value, np.nan, np.nan, "nothing")
    from scipy import stats

    def statistic(*columns: NDArray[np.float64], axis: int = -1) -> Any:
        sums = [column.sum(axis=axis) for column in columns]
        return combine(*(sums[k] / sums[k + 1] for k in range(0, len(sums), 2)))

    # Totals and counts of all sides are resampled together: a jobset is drawn, or it is not.
    result = stats.bootstrap(
        [column for side in sides for column in (side.totals, side.counts)],
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_BOOTSTRAP_SEED),
    )
    low, high = result.confidence_interval
    return Estimate(value, float(low), float(high), "jobsets")
