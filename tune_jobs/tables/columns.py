"""What the columns of all tables are called, their units, and how a number is written."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_env.core.durations import duration
from cluster_env.evaluation import Estimate

SHARE, COUNT, RATIO, TIME, SECONDS = "share", "count", "ratio", "time", "s"
"""Units. A share of 0.7 is shown as 70.0%; a time counts what its world does, seconds are those of
a log and shown in the unit that suits them."""

Time = Callable[[float], str]


def plain_time(value: float) -> str:
    """A time in units of its world, which the head of the column names."""
    return f"{value:,.1f}"


def shown(value: Any, unit: str = RATIO, time: Time = plain_time) -> str:
    """A value as people read it: ``70.0%``, ``1.5 h``, ``12,345``; ``-`` if it is unknown."""
    if isinstance(value, str):
        return value
    number = float(value)
    if math.isnan(number):
        return "-"
    if unit == SECONDS:
        return duration(number)
    if unit == TIME:
        return time(number)
    if unit == SHARE:
        return f"{number:.1%}"
    return f"{number:,.0f}" if unit == COUNT else f"{number:,.2f}"


@dataclass(frozen=True)
class Column:
    """A column: its title where there is room, and in short; see `SHARE` for units."""

    title: str
    unit: str = RATIO
    short: str = ""

    @property
    def head(self) -> str:
        """The title in a line of 80 characters."""
        return self.short or self.title

    def write(self, value: Any, time: Time = plain_time) -> str:
        """A value as people read it, see `shown`."""
        return shown(value, self.unit, time)


COLUMNS = {
    "slowdown": Column("slowdown"),
    "bounded_slowdown": Column("bounded slowdown", short="slowdown"),
    "utilization": Column("utilization", SHARE, "util"),
    "utilization_to_end": Column("utilization to the end", SHARE, "to end"),
    "to_end": Column("utilization to the end", SHARE, "to end"),
    "wait": Column("mean wait", TIME, "wait"),
    "mean_wait": Column("mean wait", TIME, "wait"),
    "longest_wait": Column("longest wait", TIME, "longest"),
    "completion_time": Column("mean completion time", TIME, "completion"),
    "completion_p95": Column("95th percentile of completion times", TIME, "p95"),
    "longest_completion": Column("longest completion time", TIME, "longest"),
    "least_completion": Column("lower bound of completion times", TIME, "bound"),
    "completion_time_narrow": Column("completion time of narrow jobs", TIME, "narrow"),
    "completion_time_medium": Column("completion time of medium jobs", TIME, "medium"),
    "completion_time_wide": Column("completion time of wide jobs", TIME, "wide"),
    "turnaround": Column("turnaround", TIME),
    "makespan": Column("makespan", TIME),
    "mean_queue": Column("waiting jobs", short="queue"),
    "bounded_slowdown_narrow": Column("slowdown of narrow jobs", short="narrow"),
    "bounded_slowdown_medium": Column("slowdown of medium jobs", short="medium"),
    "bounded_slowdown_wide": Column("slowdown of wide jobs", short="wide"),
    "slowdown_small": Column("slowdown of short jobs", short="small"),
    "slowdown_large": Column("slowdown of long jobs", short="large"),
    "largest_slowdown": Column("largest slowdown", short="largest"),
    "slowdown_p95": Column("95th percentile", short="p95"),
    "within_2": Column("slowdown at most 2", SHARE, "<=2"),
    "win_rate": Column("win rate", SHARE),
    "unfinished": Column("unfinished", COUNT),
    "jobs": Column("jobs", COUNT),
    "rows": Column("rows", COUNT),
    "first_in_line": Column("first in line", COUNT),
    "of_jobs": Column("share of jobs", SHARE, "% jobs"),
    "of_work": Column("share of work", SHARE, "% work"),
    "share": Column("share", SHARE),
    "withheld": Column("jobs delayed although they fit", SHARE),
    "holding": Column("steps in which a job is delayed although it fits", SHARE),
    "better": Column("sequences on which it is better", SHARE),
    "closed": Column("share of the gain of specialists", SHARE),
    "median_run": Column("median run", TIME),
    "run_over_estimate": Column("run over estimate", SHARE),
    "recorded": Column("recorded", TIME),
    "simulated": Column("simulated", TIME),
    "difference": Column("difference", TIME),
    "ratio_low": Column("from"),
    "ratio_high": Column("to"),
}
"""All columns with a title or unit of their own."""


def column(name: str) -> Column:
    """The column of a name; one that is not in `COLUMNS` is called by it and holds numbers."""
    return COLUMNS.get(name) or Column(name.replace("_", " "))


def digits_of(values: Any) -> int:
    """Digits behind the point of a column that may hold any cost: fewer, the larger it is."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 2 if largest >= 10 or not largest else 3 if largest >= 0.1 else 5


def with_interval(ends: Sequence[float], digits: int = 2, sign: str = "") -> str:
    """``5.10 [4.80, 5.40]``; without an interval where there is none, ``-`` if it is unknown.

    Args:
        ends: the mean, and both ends of its interval, NaN if there is none.
        digits: behind the point.
        sign: ``+`` for differences.
    """
    mean, low, high = (f"{number:{sign},.{digits}f}" for number in ends)
    if math.isnan(ends[0]):
        return "-"
    return mean if math.isnan(ends[1]) else f"{mean} [{low}, {high}]"


def share_with_interval(ends: Sequence[float]) -> str:
    """``62.0% [55.1%, 68.9%]``, likewise."""
    mean, low, high = (shown(number, SHARE) for number in ends)
    return mean if math.isnan(ends[1]) else f"{mean} [{low}, {high}]"


def within_range(metric: str, estimate: Estimate) -> Estimate:
    """An interval without what no mean of the metric can be.

    Shares lie between 0 and 1, times are at least 0, slowdowns at least 1.
    """
    unit = column(metric).unit
    if unit not in (SHARE, TIME) and "slowdown" not in metric:
        return estimate
    least = min(0.0 if unit in (SHARE, TIME) else 1.0, estimate.value)
    most = 1.0 if unit == SHARE else math.inf
    low, high = max(estimate.low, least), min(estimate.high, most)
    nothing = math.isnan(estimate.low)
    return estimate if nothing else Estimate(estimate.value, low, high, estimate.over)
