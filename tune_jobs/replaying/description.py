"""A job log described: what came when, how large, how long, how well estimated, and from whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying.outcomes import means_between, size_classes
from tune_jobs.tables.columns import COUNT, RATIO, SECONDS, SHARE, TIME, Column, shown
from tune_jobs.tables.printing import Sheet

WEEK_S = 7 * 24 * 3600
MOST_ROWS = 20
"""Rows of a table of weeks, users or queues that people get to see; files hold all."""

_QUANTILES = {"least": 0.0, "10%": 0.1, "median": 0.5, "90%": 0.9, "most": 1.0}
_Rows = list[dict[str, object]]


@dataclass(frozen=True, eq=False)
class Played:
    """When the jobs of a log started: at the site, or under a rule.

    Attributes:
        start: int64 ``(num_jobs,)``, seconds of the log's clock.
        wait: int64 ``(num_jobs,)``, seconds from when each job could start.
        words: where that comes from: ``as recorded``.
    """

    start: NDArray[np.int64]
    wait: NDArray[np.int64]
    words: str


def facts(
    jobs: RecordedJobs, capacity: Sequence[int], played: Played
) -> dict[str, tuple[object, str]]:
    """The log in a few numbers: values with their units, by what they are."""
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    found: dict[str, tuple[object, str]] = {
        "jobs": (jobs.num_jobs, COUNT),
        "time from first to last submission": (jobs.span, SECONDS),
    }
    if jobs.epoch is not None:
        days = [datetime.fromtimestamp(jobs.epoch + at, UTC).date() for at in (first, last)]
        found["dates (UTC)"] = (f"{days[0]} to {days[1]}", "")
    for name in ("user", "group", "queue"):
        if name in jobs.ids:
            found[f"{name}s"] = (int(jobs.ids[name].max()) + 1, COUNT)
    for name, units in zip(jobs.resources, capacity, strict=True):
        found[name] = (units, COUNT)
    for name, value in zip(jobs.resources, jobs.load(capacity), strict=True):
        found[f"load of {name}"] = (value, SHARE)
    edges = np.array([first, last + 1], np.int64)
    for k, name in enumerate(jobs.resources):
        held = means_between(played.start, played.start + jobs.run, jobs.demand[:, k], edges)
        found[f"utilization of {name}, {played.words}"] = (held[0] / capacity[k], SHARE)
    found[f"mean wait, {played.words}"] = (float(played.wait.mean()), SECONDS)
    found[f"longest wait, {played.words}"] = (int(played.wait.max()), SECONDS)
    return found


def summary(facts: Mapping[str, tuple[object, str]]) -> Sheet:
    """Facts as a table: each as people read it, and as it is."""
    rows: _Rows = [
        {"fact": name, "value": shown(value, unit), "exact": value}
        for name, (value, unit) in facts.items()
    ]
    return Sheet("summary", "The log in a few numbers", ("fact", "value"), rows)


def dropped(jobs: RecordedJobs) -> Sheet:
    """What was left out, and why."""
    rows: _Rows = [
        {"because_the_job": one.reason, "jobs": one.count, "first_in_line": one.line}
        for one in jobs.dropped
    ]
    note = ""
    if jobs.rows:
        lost = sum(one.count for one in jobs.dropped)
        note = f"of {jobs.rows:,} rows; jobs: {jobs.rows - lost:,}"
    own = {"jobs": Column("rows", COUNT)} if jobs.rows else {}
    shown = ["because_the_job", "jobs", "first_in_line"]
    return Sheet("dropped", "Left out", shown, rows, note, own, MOST_ROWS)


def noticed(jobs: RecordedJobs) -> Sheet:
    """What is not what it seems, and what was made of it."""
    rows: _Rows = [
        {"the_row": one.what, "rows": one.count, "first_in_line": one.line} for one in jobs.noticed
    ]
    shown = ["the_row", "rows", "first_in_line"]
    return Sheet("noticed", "Noticed", shown, rows, most=MOST_ROWS)


def spread(jobs: RecordedJobs, played: Played) -> list[Sheet]:
    """Quantiles of times, and of sizes."""
    times = {
        "run time": jobs.run,
        "estimate": jobs.estimate,
        "between arrivals": np.diff(jobs.submit),
        f"wait, {played.words}": played.wait,
    }
    sizes = {name: jobs.demand[:, k] for k, name in enumerate(jobs.resources)}
    return [
        _quantiles("times", "Times", times, SECONDS),
        _quantiles("sizes", "Resources of a job", sizes, COUNT),
    ]


def _quantiles(name: str, title: str, columns: dict[str, NDArray[np.int64]], unit: str) -> Sheet:
    rows: _Rows = [
        {
            "of": of,
            **{at: float(np.quantile(values, q)) for at, q in _QUANTILES.items()},
            "mean": float(values.mean()),
        }
        for of, values in columns.items()
        if values.size
    ]
    own = {of: Column(of, unit) for of in _QUANTILES}
    own["mean"] = Column("mean", RATIO if unit == COUNT else unit)
    return Sheet(name, title, ["of", *own], rows, own=own)


def by_size(jobs: RecordedJobs, capacity: Sequence[int]) -> Sheet:
    """Jobs and work by the processors that are asked for, in powers of two."""
    size = jobs.demand[:, 0]
    frame = pd.DataFrame({"run": jobs.run, "work": (jobs.run * size).astype(np.float64)})
    classes, labels = size_classes(size, int(capacity[0]))
    rows: _Rows = []
    for power, inside in frame.groupby(classes):
        rows.append(
            {
                "processors": labels[int(power)],
                "jobs": len(inside),
                "of_jobs": len(inside) / jobs.num_jobs,
                "of_work": float(inside["work"].sum() / frame["work"].sum()),
                "median_run": float(inside["run"].median()),
            }
        )
    shown = ["processors", "jobs", "of_jobs", "of_work", "median_run"]
    return Sheet("by-size", "Sizes", shown, rows)


def estimates(jobs: RecordedJobs) -> Sheet:
    """How good the estimates are, and which are popular."""
    accuracy = jobs.run / jobs.estimate
    popular = pd.Series(jobs.estimate).value_counts()
    rows: _Rows = [
        {"what": "estimate is the run time", "share": float((accuracy == 1).mean())},
        {"what": "estimate is longer than the run time", "share": float((accuracy < 1).mean())},
        {"what": "job runs longer than its estimate", "share": float((accuracy > 1).mean())},
        {"what": "run time over estimate, mean", "share": float(accuracy.mean())},
        {"what": "run time over estimate, median", "share": float(np.median(accuracy))},
        {
            "what": "one of the twenty most popular estimates",
            "share": float(popular.iloc[:20].sum() / jobs.num_jobs),
        },
    ]
    note = f"{popular.size:,} different estimates"
    if (accuracy == 1).all():
        note = "all estimates equal the run times, so the log may have no estimates"
    return Sheet("estimates", "Estimates", ["what", "share"], rows, note)


def week_names(jobs: RecordedJobs, begin: NDArray[np.int64]) -> list[str]:
    """Dates of the begin of weeks, seconds of the log's clock; numbers if it knows no dates."""
    if jobs.epoch is None:
        return [f"{k + 1}" for k in range(begin.size)]
    return [f"{datetime.fromtimestamp(jobs.epoch + int(at), UTC).date()}" for at in begin]


def by_week(jobs: RecordedJobs, capacity: Sequence[int], played: Played) -> Sheet:
    """Load, utilization and queue, week by week from the first submission on."""
    first = int(jobs.submit[0])
    edges = np.arange(first, int(jobs.submit[-1]) + 1 + WEEK_S, WEEK_S, dtype=np.int64)
    edges[-1] = max(int(jobs.submit[-1]) + 1, int(edges[-2]) + 1)
    week = np.searchsorted(edges, jobs.submit, side="right") - 1
    num_weeks, length = edges.size - 1, np.diff(edges)
    over = played.start + jobs.run
    share = {}
    for k, name in enumerate(jobs.resources):
        of = "" if len(jobs.resources) == 1 else f"_{name}"
        work = (jobs.run * jobs.demand[:, k]).astype(np.float64)
        came = np.bincount(week, work, minlength=num_weeks)
        share[f"load{of}"] = came / length / capacity[k]
        used = means_between(played.start, over, jobs.demand[:, k], edges)
        share[f"utilization{of}"] = used / capacity[k]
    longest = np.zeros(num_weeks)
    np.maximum.at(longest, week, played.wait.astype(np.float64))
    rows = pd.DataFrame(
        {
            "week": week_names(jobs, edges[:-1]),
            "jobs": np.bincount(week, minlength=num_weeks),
            **share,
            "mean_queue": means_between(played.start - played.wait, played.start, 1, edges),
            "longest_wait": longest,
        }
    ).to_dict("records")
    note = f"queue and utilization {played.words}; the last week may be cut short"
    own = {name: Column(name.replace("_", " "), SHARE) for name in share}
    own["longest_wait"] = Column("longest wait", TIME)
    if len(jobs.resources) > 1:  # all columns are to fit into 80 characters
        del own["longest_wait"]
        for name in jobs.resources:
            short = "cpus" if name == "processors" else name
            own[f"load_{name}"] = Column(f"{short} load", SHARE)
            own[f"utilization_{name}"] = Column(f"{short} used", SHARE)
    shown = ["week", "jobs", *share, "mean_queue", "longest_wait"]
    return Sheet("by-week", "Weeks", shown, rows, note, own, MOST_ROWS)


def by_name(jobs: RecordedJobs, name: str, played: Played) -> Sheet | None:
    """Users, groups or queues with most work first; None if the log does not know them."""
    if name not in jobs.ids:
        return None
    ids = jobs.ids[name]
    named = jobs.names.get(name, np.arange(int(ids.max()) + 1))
    values = {
        "work": jobs.run * jobs.demand[:, 0].astype(np.float64),
        "wait": played.wait,
        "accuracy": jobs.run / jobs.estimate,
    }
    groups = (
        pd.DataFrame(values)
        .groupby(ids)
        .agg(
            jobs=("work", "size"),
            of_work=("work", "sum"),
            mean_wait=("wait", "mean"),
            run_over_estimate=("accuracy", "mean"),
        )
        .sort_values("of_work", ascending=False, kind="stable")
    )
    groups["of_work"] /= groups["of_work"].sum()
    rows: _Rows = [
        {name: str(named[k]) or "(none)", **row}
        for k, row in zip(groups.index, groups.to_dict("records"), strict=True)
    ]
    title = f"{name.capitalize()}s by share of work"
    shown = [name, "jobs", "of_work", "mean_wait", "run_over_estimate"]
    return Sheet(f"by-{name}", title, shown, rows, f"waits {played.words}", most=MOST_ROWS)


def points(
    jobs: RecordedJobs, capacity: Sequence[int], played: Played
) -> list[dict[str, str | float]]:
    """What a picture of the log is drawn from, as rows of panel, series, x, label and y.

    Panels are ``weeks`` and ``queue`` (by week, x is its number), ``times`` (x in seconds, y the
    share of jobs at or below), ``sizes`` (x counts the classes), ``estimates`` (x is run time over
    estimate, y a share of jobs) and ``hours`` (x is the hour of the log's day, y a share of jobs).
    """
    rows: list[dict[str, str | float]] = []

    def add(panel: str, series: str, x: float, y: float, label: str = "") -> None:
        rows.append({"panel": panel, "series": series, "x": x, "label": label, "y": y})

    weeks = by_week(jobs, capacity, played)
    for k, row in enumerate(weeks.rows):
        for name, column in weeks.own.items():
            if column.unit == SHARE:
                add("weeks", name.replace("_", " "), float(k), float(row[name]), str(row["week"]))
        add("queue", "mean queue", float(k), float(row["mean_queue"]), str(row["week"]))
    times = {"run time": jobs.run, "estimate": jobs.estimate, "wait": played.wait}
    for name, values in times.items():
        for share in np.linspace(0, 1, 101):
            at = np.quantile(values, share, method="inverted_cdf")
            add("times", name, float(at), float(share))
    for k, row in enumerate(by_size(jobs, capacity).rows):
        for name in ("of_jobs", "of_work"):
            words = name.replace("_", " ")
            add("sizes", words, float(k), float(row[name]), str(row["processors"]))
    accuracy = np.minimum(jobs.run / jobs.estimate, 1.1)
    shares, edges = np.histogram(accuracy, np.linspace(0, 1.1, 23))
    for edge, count in zip(edges[:-1], shares, strict=True):
        add("estimates", "jobs", float(edge), float(count / jobs.num_jobs))
    hour = (jobs.submit + (jobs.epoch or 0)) // 3600 % 24
    for k, count in enumerate(np.bincount(hour, minlength=24)):
        add("hours", "jobs", float(k), float(count / jobs.num_jobs))
    return rows
