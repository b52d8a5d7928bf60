"""What a change does to the jobs of a log: the same jobs before and after, in pairs.

Intervals are over weeks: the jobs of a week wait for the same others, so that it is weeks that are
drawn with replacement, with all their jobs of both sides. In a log that is too short they are over
days, and there are none in one of a few days. The longest wait has no interval, because it is a
single job's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.intervals import Estimate, Pooled, difference_interval
from cluster_env.evaluation.metrics import wait
from cluster_env.objectives.standard import bounded_slowdown
from tune_jobs.replaying.fidelity import FEWEST_WEEKS
from tune_jobs.replaying.outcomes import timeline

Values = NDArray[np.float64]

DAY_S = 86_400
_RESAMPLES = 500
_SEED = 20160909
_LEVELS = {"median_wait": 0.5, "wait_95": 0.95}


@dataclass(frozen=True, eq=False)
class Periods:
    """Stretches of a log that intervals are over.

    Attributes:
        unit: ``weeks`` or ``days``.
        index: of each job, from 0, int64 ``(num_jobs,)``.
        edges: of the stretches, seconds, rising, int64 ``(num_periods + 1,)``.
        enough: whether there are as many as an interval needs.
    """

    unit: str
    index: NDArray[np.int64]
    edges: NDArray[np.int64]
    enough: bool

    @classmethod
    def of(cls, arrival: NDArray[np.integer], span: int) -> "Periods":
        """Weeks of the arrivals in so many seconds, or days if those are too few."""
        weeks = cls._lasting("weeks", 7 * DAY_S, arrival, span)
        return weeks if weeks.enough else cls._lasting("days", DAY_S, arrival, span)

    @classmethod
    def _lasting(cls, unit: str, length: int, arrival: NDArray[np.integer], span: int) -> "Periods":
        # A last piece of less than half a period belongs to the one before.
        num = max(round(span / length), 1)
        edges = length * np.arange(num + 1, dtype=np.int64)
        edges[-1] = max(span, 1)
        index = np.minimum(arrival // length, num - 1).astype(np.int64)
        return cls(unit, index, edges, np.unique(index).size >= FEWEST_WEEKS)

    def edges_in(self, span: int) -> NDArray[np.int64]:
        """The edges where the same jobs arrive in another time, seconds."""
        return np.rint(self.edges * (span / self.edges[-1])).astype(np.int64)

    @property
    def num(self) -> int:
        """How many there are."""
        return self.edges.size - 1

    def pooled(self, values: Values, members: NDArray[np.bool_] | slice = slice(None)) -> Pooled:
        """Values of some of the jobs, summed by period."""
        index = self.index[members]
        totals = np.bincount(index, values[members], self.num).astype(np.float64)
        return Pooled(totals, np.bincount(index, minlength=self.num).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Lost:
    """Today's work that is not done after a change.

    Attributes:
        impossible: jobs that cannot run then.
        shorter: others, which run for shorter.
        of_work: share of the processor seconds of all today's jobs.
        by_partition: the same of the jobs of each partition of a site.
    """

    impossible: int
    shorter: int
    of_work: float
    by_partition: Mapping[str, float]

    @classmethod
    def of(cls, now: Values, then: Values, partitions: Mapping[str, NDArray[np.bool_]]) -> "Lost":
        """From processor seconds of today's jobs, float64 ``(num_jobs,)``; NaN: cannot run."""
        gone, done = np.isnan(then), np.nan_to_num(then)
        shares = {
            name: float(1 - done[members].sum() / max(now[members].sum(), 1))
            for name, members in {"": np.ones(now.size, np.bool_), **partitions}.items()
        }
        return cls(int(gone.sum()), int((then < now).sum()), shares.pop(""), shares)

    @property
    def sentence(self) -> str:
        """What disappears, for people; empty where nothing does."""
        if not (self.impossible or self.shorter):
            return ""
        which = [f"{self.impossible:,} of today's jobs cannot run after the change"]
        which = which if self.impossible else []
        which += [f"{self.shorter:,} run for shorter than today"] if self.shorter else []
        parts = {name: share for name, share in self.by_partition.items() if share > 0}
        own = [f"{share:.1%} of that in the partition {name}" for name, share in parts.items()]
        return (
            f"{' and '.join(which)}: {', '.join([f'{self.of_work:.1%} of all work', *own])} "
            "(processor seconds) disappears, and a gain may be due to that alone"
        )


@dataclass(frozen=True, eq=False)
class Side:
    """What became of the jobs of a log, each in its place.

    Attributes:
        name: of the side.
        slowdown: bounded slowdowns, float64 ``(num_jobs,)``.
        wait: seconds, likewise.
        work: processors times seconds, likewise.
        use: utilization while jobs arrive, by period.
        of_work: share of today's work, of all jobs, that is done on this side.
    """

    name: str
    slowdown: Values
    wait: Values
    work: Values
    use: Pooled
    of_work: float = 1.0

    @classmethod
    def of(
        cls, name: str, schedule: Schedule, place: NDArray[np.int64], edges: NDArray[np.int64]
    ) -> "Side":
        """From the schedule of one episode.

        Args:
            name: of the side.
            schedule: of all the jobs.
            place: where each job of the schedule's jobset stands, int64 ``(num_jobs,)``; -1 where
                it does not count.
            edges: of the periods, by the clock of this schedule, int64 ``(num_periods + 1,)``.
        """
        to = place[schedule.job]
        counts = to >= 0
        work = schedule.demand[:, 0].astype(np.float64) * schedule.duration
        columns = {}
        for key, values in (
            ("slowdown", bounded_slowdown(schedule)),
            ("wait", wait(schedule)),
            ("work", work),
        ):
            columns[key] = np.empty(int(counts.sum()))
            columns[key][to[counts]] = values[counts]
        length = np.diff(edges).astype(np.float64)
        use = Pooled(timeline(schedule, edges)["utilization"] * length, length)
        return cls(name, columns["slowdown"], columns["wait"], columns["work"], use)

    @property
    def numbers(self) -> dict[str, float]:
        """Of all jobs."""
        return {
            "bounded_slowdown": float(self.slowdown.mean()),
            "mean_wait": float(self.wait.mean()),
            **{name: float(np.quantile(self.wait, at)) for name, at in _LEVELS.items()},
            "longest_wait": float(self.wait.max()),
            "utilization": self.use.mean,
            "of_work": self.of_work,
        }


def mean_change(
    now: Values, then: Values, periods: Periods, members: NDArray[np.bool_] | slice = slice(None)
) -> Estimate:
    """Mean of then minus now over some of the jobs, with its interval over periods."""
    value = float((then[members] - now[members]).mean())
    after, before = (periods.pooled(values, members) for values in (then, now))
    if not periods.enough or int(after.filled.sum()) < FEWEST_WEEKS:
        return Estimate(value, np.nan, np.nan, "nothing")
    return difference_interval(after, before)


def changes(now: Side, then: Side, periods: Periods) -> dict[str, Estimate]:
    """Then minus now, for each of `Side.numbers`."""
    before, after = now.numbers, then.numbers
    found = {
        name: Estimate(after[name] - before[name], np.nan, np.nan, "nothing") for name in before
    }
    if not periods.enough:
        return found
    found["bounded_slowdown"] = mean_change(now.slowdown, then.slowdown, periods)
    found["mean_wait"] = mean_change(now.wait, then.wait, periods)
    found["utilization"] = difference_interval(then.use, now.use)
    for name, (low, high) in _of_quantiles(now.wait, then.wait, periods).items():
        found[name] = Estimate(found[name].value, low, high, "jobsets")
    return found


def _of_quantiles(now: Values, then: Values, periods: Periods) -> dict[str, tuple[float, float]]:
    """Percentile bootstrap of the differences of quantiles, over periods with jobs."""
    _, index = np.unique(periods.index, return_inverse=True)
    num = int(index.max()) + 1
    drawn = np.random.default_rng(_SEED).multinomial(num, np.full(num, 1 / num), _RESAMPLES)
    levels = np.array(list(_LEVELS.values()))
    found = np.zeros((_RESAMPLES, levels.size))
    for values, sign in ((then, 1), (now, -1)):
        order = np.argsort(values, kind="stable")
        rising, of = values[order], index[order]
        for k, counts in enumerate(drawn):
            reached = np.cumsum(counts[of])
            place = np.searchsorted(reached, levels * reached[-1])
            found[k] += sign * rising[np.minimum(place, rising.size - 1)]
    low, high = np.quantile(found, (0.025, 0.975), axis=0)
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return dict(zip(_LEVELS, ends, strict=True))


def of_groups(
    now: Side, then: Side, group: NDArray[np.int64], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Numbers of groups that have jobs, those that gain the most waiting time first.

    Args:
        now: before.
        then: after.
        group: number of each job's group, int64 ``(num_jobs,)``.
        names: of the groups.
    """
    frame = pd.DataFrame(
        {
            "now": now.wait,
            "then": then.wait,
            "slowdown_now": now.slowdown,
            "slowdown_then": then.slowdown,
            "work": now.work,
        }
    )
    by_group = frame.groupby(group)
    means, jobs = by_group.mean(), by_group.size()
    change = means["then"] - means["now"]
    rows: list[dict[str, Any]] = []
    for k in (change * jobs).sort_values(kind="stable").index:
        row: dict[str, Any] = {"name": names[k] or "(none)", "jobs": float(jobs[k])}
        row["of_work"] = float(means["work"][k] * jobs[k] / now.work.sum())
        row |= {name: float(means[name][k]) for name in ("now", "then")}
        row |= {"change": float(change[k]), "change_in_all": float(change[k] * jobs[k])}
        row |= {name: float(means[name][k]) for name in ("slowdown_now", "slowdown_then")}
        rows.append(row)
    return rows


def of_classes(
    now: Side, then: Side, periods: Periods, classes: Mapping[str, NDArray[np.bool_]]
) -> list[dict[str, Any]]:
    """Numbers of a few classes of jobs, with intervals."""
    rows = []
    for name, members in classes.items():
        found = mean_change(now.wait, then.wait, periods, members)
        row: dict[str, Any] = {"name": name, "jobs": float(members.sum())}
        row |= {
            one: float(side.wait[members].mean()) for one, side in (("now", now), ("then", then))
        }
        row |= {"change": found.value, "change_low": found.low, "change_high": found.high}
        row["slowdown_now"] = float(now.slowdown[members].mean())
        row["slowdown_then"] = float(then.slowdown[members].mean())
        rows.append(row)
    return rows
