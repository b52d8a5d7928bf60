"""What a change does to the jobs of a log, as tables and as points of a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.evaluation.metrics import size_class_of
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying.effects import (
    Lost,
    Periods,
    Side,
    changes,
    mean_change,
    of_classes,
    of_groups,
)
from tune_jobs.replaying.outcomes import SIZES
from tune_jobs.tables.columns import COUNT, SECONDS, SHARE, Column
from tune_jobs.tables.printing import Sheet

MOST_SHOWN = 4
"""Users who gain, and as many who lose, that people get to see."""

_MOST_QUEUES = 12
_FEW_WEEKS = 10

_NUMBERS = {
    "side": Column(""),
    "bounded_slowdown": Column("bounded slowdown", short="slowdown"),
    "mean_wait": Column("mean wait", SECONDS),
    "median_wait": Column("median wait", SECONDS, "median"),
    "wait_95": Column("95% wait at most", SECONDS, "95%"),
    "longest_wait": Column("longest wait", SECONDS, "longest"),
    "utilization": Column("utilization", SHARE, "util"),
    "of_work": Column("share of today's work", SHARE, "work"),
}
_GROUP = {
    "jobs": Column("jobs", COUNT),
    "of_work": Column("share of work", SHARE, "% work"),
    "now": Column("mean wait now", SECONDS, "now"),
    "then": Column("mean wait then", SECONDS, "then"),
    "change": Column("change of the mean wait", SECONDS, "change"),
    "change_low": Column("from", SECONDS),
    "change_high": Column("to", SECONDS),
    "change_in_all": Column("change of all waits together", SECONDS, "in all"),
    "slowdown_now": Column("bounded slowdown now", short="slowd. now"),
    "slowdown_then": Column("bounded slowdown then", short="then"),
}
_CLASSES = (
    *("jobs", "now", "then", "change", "change_low", "change_high"),
    *("slowdown_now", "slowdown_then"),
)
_USERS = ("jobs", "of_work", "now", "then", "change", "change_in_all")

_KINDS = {
    "user": ("user", "users"),
    "group": ("account", "accounts"),
    "queue": ("partition", "partitions"),
}
"""How the groups of a log are called."""


@dataclass(frozen=True, eq=False)
class Effects:
    """The sides of a what-if, with the same jobs.

    Attributes:
        now: today.
        then: after all changes.
        lost: today's work that disappears.
        each: after each change alone, named by it; may be empty.
        periods: what intervals are over.
        capacity: of today's machine, by which jobs are narrow or wide, ``(num_resources,)``.
        partitions: jobs of the partitions of a site, bool ``(num_jobs,)`` by name; empty without.
    """

    now: Side
    then: Side
    lost: Lost
    each: Sequence[Side]
    periods: Periods
    capacity: NDArray[np.int64]
    partitions: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)


def sheets_of(effects: Effects, jobs: RecordedJobs, *, few: bool = False) -> list[Sheet]:
    """All tables; of users and accounts those alone that gain or lose most, if few are wanted."""
    sheets = [_in_all(effects), *_each(effects), _by_size(effects, jobs)]
    return [*sheets, *_by_group(effects, jobs, few)]


def _in_all(effects: Effects) -> Sheet:
    now, then, periods = effects.now, effects.then, effects.periods
    found = changes(now, then, periods)
    rows: list[dict[str, Any]] = [{"side": side.name, **side.numbers} for side in (now, then)]
    for side, part in (("change", "value"), ("from", "low"), ("to", "high")):
        rows.append({"side": side, **{name: getattr(one, part) for name, one in found.items()}})
    note = (
        f"change: then minus now, of the same jobs, with a 95% interval over {periods.num} "
        f"{periods.unit}; utilization while jobs arrive"
    )
    if not periods.enough:
        rows = rows[:3]
        note = "change: then minus now, of the same jobs; the log is too short for intervals"
    elif periods.unit == "days":
        note += "; days that follow each other are alike, so intervals are rather too narrow"
    elif periods.num < _FEW_WEEKS:
        note += "; of so few weeks, intervals are rather too narrow"
    note += "; work: processor seconds of all today's jobs" if effects.lost.sentence else ""
    shown = [name for name in _NUMBERS if name != "of_work" or effects.lost.sentence]
    return Sheet("now-and-then", "Now and then", shown, rows, note, _NUMBERS)


def _each(effects: Effects) -> list[Sheet]:
    if not effects.each:
        return []
    rows = []
    for side in (*effects.each, effects.then):
        found = mean_change(effects.now.wait, side.wait, effects.periods)
        numbers = {"bounded_slowdown": side.numbers["bounded_slowdown"]}
        numbers |= {"mean_wait": side.numbers["mean_wait"], "utilization": side.use.mean}
        numbers |= {"of_work": side.of_work}
        name = "all together" if side is effects.then else side.name
        ends = {"change": found.value, "change_low": found.low, "change_high": found.high}
        rows.append({"side": name, **numbers, **ends})
    own = {name: _NUMBERS[name] for name in ("side", *numbers)}
    own |= {name: _GROUP[name] for name in ends}
    return [Sheet("each", "Each change alone", tuple(own), rows, "change: of the mean wait", own)]


def _by_size(effects: Effects, jobs: RecordedJobs) -> Sheet:
    size = size_class_of(jobs.demand, effects.capacity)
    classes = {name: size == k for k, name in enumerate(SIZES) if (size == k).any()}
    rows = of_classes(effects.now, effects.then, effects.periods, classes)
    note = "mean waits; narrow: at most a sixteenth of today's machine, wide: more than a quarter"
    return _sheet("size", "By size", _CLASSES, rows, note)


def _by_group(effects: Effects, jobs: RecordedJobs, few: bool) -> list[Sheet]:
    sheets = []
    for kind, (name, plural) in _KINDS.items():
        if kind == "queue" and effects.partitions:
            rows = of_classes(effects.now, effects.then, effects.periods, effects.partitions)
            sheets.append(_sheet(name, f"By {name}", _CLASSES, rows, "mean waits"))
            continue
        if kind not in jobs.ids or not jobs.ids[kind].any():
            continue
        group, names = jobs.ids[kind], list(map(str, jobs.names[kind]))
        title = f"By {name}"
        if kind == "queue" and len(names) <= _MOST_QUEUES:
            classes = {one or "(none)": group == k for k, one in enumerate(names)}
            classes = {one: members for one, members in classes.items() if members.any()}
            rows = of_classes(effects.now, effects.then, effects.periods, classes)
            sheets.append(_sheet(name, title, _CLASSES, rows, "mean waits"))
            continue
        rows = of_groups(effects.now, effects.then, group, names)
        note = _who_gains(rows, plural)
        if few and len(rows) > 2 * MOST_SHOWN:
            left = len(rows) - 2 * MOST_SHOWN
            rows = [*rows[:MOST_SHOWN], *rows[-MOST_SHOWN:]]
            note += f"; {left:,} between these are in by-{name}.csv with --out"
        sheets.append(_sheet(name, title, _USERS, rows, note))
    return sheets


def _who_gains(rows: Sequence[dict[str, Any]], plural: str) -> str:
    change = np.array([row["change"] for row in rows])
    shorter, longer = int((change < 0).sum()), int((change > 0).sum())
    return (
        f"mean waits, who gains most first; shorter for {shorter:,} of {len(rows):,} {plural}, "
        f"longer for {longer:,}"
    )


def _sheet(
    name: str, title: str, columns: Sequence[str], rows: Sequence[dict[str, Any]], note: str
) -> Sheet:
    """A table of groups, whose names stand in the column of their kind."""
    named = [{name: row["name"], **{k: v for k, v in row.items() if k != "name"}} for row in rows]
    if not any(np.isfinite(row.get("change_low", 0.0)) for row in rows):
        columns = [one for one in columns if one not in ("change_low", "change_high")]
    own = {name: Column(name), **_GROUP}
    return Sheet(f"by-{name}", title, (name, *columns), named, note, own)


def points(effects: Effects, jobs: RecordedJobs) -> list[dict[str, str | float]]:
    """What the picture is drawn from, as rows of panel, series, x, label, y, low and high.

    Panels are ``waits`` (x in seconds, y the share of jobs at or below) and ``sizes`` (y the change
    of the mean wait in seconds, with its interval).
    """
    rows: list[dict[str, str | float]] = []
    for side in (effects.now, effects.then):
        for share in np.linspace(0, 1, 201):
            x = float(np.quantile(side.wait, share, method="inverted_cdf"))
            rows.append(_point("waits", side.name, x, float(share)))
    for k, row in enumerate(_by_size(effects, jobs).rows):
        ends = row["change_low"], row["change_high"]
        rows.append(_point("sizes", "change", float(k), row["change"], row["size"], ends))
    return rows


def _point(
    panel: str,
    series: str,
    x: float,
    y: float,
    label: str = "",
    ends: tuple[float, float] = (float("nan"), float("nan")),
) -> dict[str, str | float]:
    shown: dict[str, str | float] = {"panel": panel, "series": series, "x": x, "label": label}
    return shown | {"y": y, "low": ends[0], "high": ends[1]}
