"""A schedule, summed up: every metric by jobset and pooled, with intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.core.schedule import Schedule
from cluster_env.core.spec import spec_of
from cluster_env.core.world import World
from cluster_env.evaluation.intervals import Estimate, Pooled, jobset_interval
from cluster_env.evaluation.metrics import METRICS, get_metric
from cluster_env.objectives import Metric


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What a policy achieved on some jobsets, all of their jobs or those that are measured.

    Attributes:
        totals: by name of the metric, the sum of its values over each jobset's jobs, or episodes,
            float64 ``(num_jobsets,)``.
        counts: by name of the metric, how many values that were, float64 ``(num_jobsets,)``.
        num_unfinished: jobs of each jobset that had not finished when their episode ended, int64
            ``(num_jobsets,)``; with several episodes of a jobset, over all of them. Jobs that a
            full backlog dropped (`Rules.drop_when_backlog_full`) are among them.
        num_jobs: jobs of each jobset, over all its episodes, int64 ``(num_jobsets,)``.
        num_episodes: episodes in all.
        slowdown_p95: slowdown that 95 % of all jobs are at or below; of unfinished jobs, their
            slowdown so far.
    """

    totals: dict[str, NDArray[np.float64]]
    counts: dict[str, NDArray[np.float64]]
    num_unfinished: NDArray[np.int64]
    num_jobs: NDArray[np.int64]
    num_episodes: int
    slowdown_p95: float

    def __repr__(self) -> str:
        """The means as a table, below what they are over."""
        width = max(map(len, self.means))
        lines = [f"{name:<{width}}  {value:>14,.4f}" for name, value in self.means.items()]
        head = f"Summary of {self.num_jobsets:,} jobsets, {self.num_episodes:,} episodes"
        return "\n".join([head, *lines])

    @property
    def num_jobsets(self) -> int:
        """Number of jobsets."""
        return int(self.num_jobs.size)

    def mean(self, metric: str) -> float:
        """The mean over all jobs, or episodes, of all jobsets; NaN if there are none.

        Raises:
            InputError: if the metric was not summarized.
        """
        count = float(self._pooled(metric).counts.sum())
        return float(self.totals[metric].sum()) / count if count else float("nan")

    def rows(self, metric: str) -> NDArray[np.float64]:
        """The mean within each jobset, float64 ``(num_jobsets,)``; NaN where there is no value."""
        counts = self._pooled(metric).counts
        rows = np.full(counts.size, np.nan)
        np.divide(self.totals[metric], counts, out=rows, where=counts > 0)
        return rows

    def estimate(self, metric: str) -> Estimate:
        """The mean with its 95 % interval over jobsets."""
        return jobset_interval(self._pooled(metric))

    def _pooled(self, metric: str) -> Pooled:
        if metric not in self.counts:
            raise unknown("metric of the summary", metric, self.counts)
        return Pooled(self.totals[metric], self.counts[metric])

    @cached_property
    def means(self) -> dict[str, float]:
        """All means by name, then ``slowdown_p95``, ``unfinished`` and ``num_jobs``."""
        means = {name: self.mean(name) for name in self.totals}
        means["slowdown_p95"] = self.slowdown_p95
        means["unfinished"] = float(self.num_unfinished.sum())
        means["num_jobs"] = float(self.num_jobs.sum())
        return means


def summarize(
    schedule: Schedule,
    also: Sequence[str] = (),
    *,
    warmup: int = 0,
    metrics: Sequence[str] | None = None,
) -> Summary:
    """Sums a schedule up; every number comes from the schedule alone.

    With a warm-up, what is measured is a cluster in steady operation: the jobs of the first steps
    fill the empty cluster, those of the last steps keep coming while the measured ones are served,
    and neither counts. Metrics with one value for each episode (makespan, utilization) are of the
    whole episode all the same.

    Args:
        schedule: episodes of jobsets ``0..``, several of one jobset or one each.
        also: names of further metrics; see `get_metric`.
        warmup: time steps at the beginning and at the end of the arrival window whose jobs do not
            count: measured are those that arrive in ``[warmup, window - warmup)``.
        metrics: names of what is measured, usually the world's; all of `METRICS` if not given.

    Raises:
        InputError: if the warm-up leaves nothing of an arrival window.
    """
    check_warmup(warmup, schedule.window)
    num_jobsets = int(schedule.jobset.max()) + 1
    of_job = schedule.jobset[schedule.episode]
    measured = is_measured(schedule, warmup)
    every = np.ones(schedule.num_episodes, np.bool_)
    totals, counts = {}, {}
    for name in dict.fromkeys((*(metrics or METRICS.names()), *also)):
        metric = get_metric(name)
        jobset, kept = (of_job, measured) if metric.per == "job" else (schedule.jobset, every)
        totals[name], counts[name] = _pool(metric, schedule, jobset, kept, num_jobsets)
    # The smallest slowdown that 95 % do not exceed: one that a job has, without interpolation.
    slowdown, slowdown_p95 = schedule.slowdown[measured], float("nan")
    if slowdown.size:
        slowdown_p95 = float(np.quantile(slowdown, 0.95, method="inverted_cdf"))
    return Summary(
        totals=totals,
        counts=counts,
        num_unfinished=np.bincount(of_job[measured & ~schedule.finished], minlength=num_jobsets),
        num_jobs=np.bincount(of_job[measured], minlength=num_jobsets),
        num_episodes=schedule.num_episodes,
        slowdown_p95=slowdown_p95,
    )


def is_measured(schedule: Schedule, warmup: int) -> NDArray[np.bool_]:
    """Which jobs arrive in ``[warmup, window - warmup)``, bool ``(num_jobs,)``.

    Jobs of a warm-up that the jobset itself has (`JobSet.counted`) are not measured either.
    """
    # As many steps at the end: who came then would be measured while nobody comes any more.
    last = schedule.window[schedule.episode] - warmup
    measured: NDArray[np.bool_] = (schedule.arrival >= warmup) & (schedule.arrival < last)
    counted = schedule.attributes.get("counted")
    return measured if counted is None else measured & (counted > 0)


def check_warmup(warmup: int, windows: Iterable[int]) -> None:
    """Makes sure that a warm-up leaves some steps of every arrival window.

    Raises:
        InputError: if it is negative, or leaves nothing of the shortest.
    """
    if warmup < 0:
        raise InputError(f"a warm-up must be 0 steps or longer, but {warmup} was given")
    shortest = min(windows)
    if 2 * warmup >= shortest:
        raise InputError(
            f"a warm-up of {warmup} steps is left out at both ends, which leaves nothing of "
            f"an arrival window of {shortest} steps; give a window longer than "
            f"{2 * warmup}, or a shorter warm-up"
        )


def flat_summary(schedule: Schedule, world: World, also: Sequence[str] = ()) -> dict[str, float]:
    """Flat numbers of a schedule, as training logs them.

    They are the mean of every metric by its name, the headline's with ``_low`` and ``_high`` (95 %
    interval over jobsets), ``slowdown_p95``, ``unfinished`` and ``num_jobs``.
    """
    spec = spec_of(world)
    summary = summarize(schedule, also, metrics=spec.metrics)
    estimate = summary.estimate(spec.headline)
    name = spec.headline
    return {**summary.means, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _pool(
    metric: Metric,
    schedule: Schedule,
    jobset: NDArray[np.int32],
    kept: NDArray[np.bool_],
    num_jobsets: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and number of a metric's values by jobset, of the jobs or episodes that are kept."""
    values = metric.values(schedule)
    if metric.counts is not None:
        kept = kept & metric.counts(schedule)
    values, jobset = values[kept], jobset[kept]
    totals = np.bincount(jobset, values, minlength=num_jobsets)
    counts = np.bincount(jobset, minlength=num_jobsets)
    return totals.astype(np.float64), counts.astype(np.float64)
