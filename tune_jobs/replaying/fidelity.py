"""How near simulated waits come to the recorded ones: whether a simulator knows the site.

A simulated schedule need not repeat each wait to be of use, but where it is far off in the mean, in
some weeks or for some jobs, its answers to other questions deserve no more belief.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cluster_env.evaluation.intervals import Pooled, jobset_interval
from tune_jobs.terminal.sheets import COUNT, RATIO, SECONDS, TEXT, Sheet

WEEK_S = 7 * 24 * 3600
FEWEST_WEEKS = 5
"""Weeks with jobs that an interval over weeks needs."""

LIMITS_S = (3600, 12 * 3600)
"""Requested times that classes of jobs end at."""

NEAR_S, NEAR_SHARE = 600, 0.25
"""A simulated wait is near the recorded one if it differs by at most so much, or such a share."""

SIZES = ("narrow", "medium", "wide")
LENGTHS = ("asks for up to 1 h", "asks for 1 to 12 h", "asks for more than 12 h")

OF_GROUP = {
    "jobs": COUNT,
    "recorded": SECONDS,
    "simulated": SECONDS,
    "difference": SECONDS,
    "rank": RATIO,
}
"""Columns of tables by week and class: mean waits, median difference, correlation of ranks."""

Waits = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """A log with its recorded waits, and those under some rules.

    Attributes:
        arrival: int64 ``(num_jobs,)``, seconds, never falling.
        recorded: waits in seconds, int64 ``(num_jobs,)``.
        simulated: waits by the name of the rule, likewise.
        classes: of jobs, bool ``(num_jobs,)`` by name; a job may be in several.
        weeks: names of the weeks.
    """

    arrival: NDArray[np.int64]
    recorded: Waits
    simulated: Mapping[str, Waits]
    classes: Mapping[str, NDArray[np.bool_]]
    weeks: Sequence[str]

    @property
    def week(self) -> NDArray[np.int64]:
        """Number of the week in which each job arrived, from 0, int64 ``(num_jobs,)``."""
        return np.asarray((self.arrival - self.arrival[0]) // WEEK_S, np.int64)


def classes_of(
    size: NDArray[np.int64], limit: NDArray[np.int64], queue: Sequence[str] | None
) -> dict[str, NDArray[np.bool_]]:
    """Classes of jobs by size, by what they ask for, and by queue if there are several.

    Args:
        size: 0 narrow, 1 medium, 2 wide, int64 ``(num_jobs,)``.
        limit: seconds, int64 ``(num_jobs,)``.
        queue: of each job, or None.
    """
    found = {name: np.asarray(size == k) for k, name in enumerate(SIZES)}
    length = np.searchsorted(np.asarray(LIMITS_S), limit, side="left")
    found |= {name: np.asarray(length == k) for k, name in enumerate(LENGTHS)}
    names = np.unique(np.asarray(queue if queue is not None else [""]))
    if names.size > 1:
        found |= {f"queue {name or '(none)'}": np.asarray(queue) == name for name in names}
    return {name: members for name, members in found.items() if members.any()}


def fidelity(recorded: Waits, simulated: Waits) -> dict[str, float]:
    """How near waits come to recorded ones.

    ``difference`` is the median of ``|simulated - recorded|``; ``near`` the share of jobs within 10
    minutes or a quarter; ``rank`` Spearman's correlation, NaN where all waits are equal; ``gain``
    is what the simulation takes off the mean difference that remains if every job is said to wait
    for the recorded median: 1 at best, 0 for no gain, below for a loss.
    """
    off = np.abs(simulated - recorded)
    guessed = float(np.abs(recorded - np.median(recorded)).mean())
    near = off <= np.maximum(NEAR_S, NEAR_SHARE * recorded)
    return {
        "jobs": float(recorded.size),
        "recorded": float(recorded.mean()),
        "simulated": float(simulated.mean()),
        "difference": float(np.median(off)),
        "near": float(near.mean()),
        "rank": _rank_correlation(recorded, simulated),
        "gain": 1 - float(off.mean()) / guessed if guessed else float("nan"),
    }


def _rank_correlation(first: Waits, second: Waits) -> float:
    if (first == first[0]).all() or (second == second[0]).all():
        return float("nan")
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def in_all(calibration: Calibration) -> Sheet:
    """Every rule with how near it comes, the smallest mean difference first."""
    rows: list[dict[str, Any]] = []
    for name, waits in calibration.simulated.items():
        ratio = dict(
            zip(("ratio", "ratio_low", "ratio_high"), _ratio(calibration, waits), strict=True)
        )
        rows.append({"policy": name, **fidelity(calibration.recorded, waits), **ratio})
    rows.sort(key=lambda row: _mean_difference(calibration, row["policy"]))
    units = {
        "policy": TEXT,
        "recorded": SECONDS,
        "simulated": SECONDS,
        "ratio": RATIO,
        "ratio_low": RATIO,
        "ratio_high": RATIO,
        "difference": SECONDS,
        "rank": RATIO,
        "gain": RATIO,
    }
    note = (
        "mean waits and their ratio with its 95% interval over weeks; median difference of a job's "
        "wait; correlation of ranks; gain over saying the recorded median of every job"
    )
    titles = {"ratio_low": "from", "ratio_high": "to", "difference": "off by"}
    return Sheet("fidelity", "Simulated waits against recorded ones", units, rows, note, titles)


def _mean_difference(calibration: Calibration, name: str) -> float:
    return float(np.abs(calibration.simulated[name] - calibration.recorded).mean())


def _ratio(calibration: Calibration, waits: Waits) -> tuple[float, float, float]:
    """Simulated over recorded mean wait, with an interval over weeks where there are enough."""
    num_weeks = int(calibration.week[-1]) + 1
    recorded, simulated = (
        np.bincount(calibration.week, values, num_weeks).astype(np.float64)
        for values in (calibration.recorded, waits)
    )
    if not recorded.sum():
        return (float("nan"),) * 3
    found = jobset_interval(Pooled(simulated[recorded > 0], recorded[recorded > 0]))
    value = float(simulated.sum() / recorded.sum())
    enough = int((recorded > 0).sum()) >= FEWEST_WEEKS
    return (value, found.low, found.high) if enough else (value, float("nan"), float("nan"))


def by_week(calibration: Calibration, name: str) -> Sheet:
    """Week by week, for one rule."""
    groups = {label: np.asarray(calibration.week == k) for k, label in enumerate(calibration.weeks)}
    note = "by the week of arrival; the machine is empty when the log begins"
    return _grouped(calibration, name, "week", groups, note)


def by_class(calibration: Calibration, name: str) -> Sheet:
    """By size, requested time and queue, for one rule."""
    note = "narrow: at most a sixteenth of the machine, wide: more than a quarter"
    return _grouped(calibration, name, "class", calibration.classes, note)


def _grouped(
    calibration: Calibration,
    name: str,
    of: str,
    groups: Mapping[str, NDArray[np.bool_]],
    note: str,
) -> Sheet:
    waits = calibration.simulated[name]
    rows = [
        {of: label, **fidelity(calibration.recorded[members], waits[members])}
        for label, members in groups.items()
        if members.any()
    ]
    title = f"By {of}, {name}"
    titles = {"difference": "off by"}
    return Sheet(f"fidelity-by-{of}", title, {of: TEXT, **OF_GROUP}, rows, note, titles)


def points(calibration: Calibration, best: str, most: int = 3000) -> list[dict[str, str | float]]:
    """What a picture is drawn from, as rows of panel, series, x, label and y.

    Panels are ``weeks`` and ``classes`` (mean waits in s, x counts), ``waits`` (x in seconds, y the
    share of jobs at or below) and ``jobs`` (x recorded, y simulated wait in seconds, under the
    rule that is named, of evenly chosen jobs).
    """
    rows: list[dict[str, str | float]] = []
    of_all = {"recorded": calibration.recorded, **calibration.simulated}
    weeks = {label: calibration.week == k for k, label in enumerate(calibration.weeks)}
    for panel, groups in (("weeks", weeks), ("classes", calibration.classes)):
        for k, (label, members) in enumerate(groups.items()):
            for series, waits in of_all.items():
                y = float(waits[members].mean()) if members.any() else 0.0
                rows.append(
                    {"panel": panel, "series": series, "x": float(k), "label": label, "y": y}
                )
    for series, waits in of_all.items():
        for share in np.linspace(0, 1, 101):
            x = float(np.quantile(waits, share, method="inverted_cdf"))
            rows.append({"panel": "waits", "series": series, "x": x, "label": "", "y": share})
    chosen = np.unique(np.linspace(0, calibration.recorded.size - 1, most).astype(np.int64))
    for job in chosen:
        x, y = float(calibration.recorded[job]), float(calibration.simulated[best][job])
        rows.append({"panel": "jobs", "series": best, "x": x, "label": "", "y": y})
    return rows
