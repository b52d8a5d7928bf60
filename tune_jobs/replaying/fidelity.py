"""How near simulated waits come to the recorded ones: whether a simulator knows the site.

A simulated schedule need not repeat each wait to be of use, but where it is far off in the mean, in
some weeks or for some jobs, its answers to other questions deserve no more belief.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cluster_env.core.durations import duration
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from tune_jobs.replaying.description import MOST_ROWS, WEEK_S
from tune_jobs.replaying.outcomes import SIZES
from tune_jobs.tables.printing import Sheet

FEWEST_WEEKS = 5
"""Weeks with jobs that an interval over weeks needs."""

LIMITS_S = (3600, 12 * 3600)
"""Requested times that classes of jobs end at."""

NEAR_S, NEAR_SHARE = 600, 0.25
"""A simulated wait is near the recorded one if it differs by at most so much, or such a share."""

SAME_GAIN = 0.1
"""Gains that differ from 0 by less say nothing."""

GOOD, PARTLY, NOT = "good", "partly", "not"
"""How well a log can be replayed."""

_GRADES = {GOOD: "good", PARTLY: "fair", NOT: "poor"}

_GOOD_GAIN, _GOOD_RATIO, _SOME_GAIN = 0.7, (0.8, 1.25), 0.2

LENGTHS = ("asks for up to 1 h", "asks for 1 to 12 h", "asks for more than 12 h")

_OF_GROUP = ("jobs", "recorded", "simulated", "difference", "rank")
"""Columns of tables by week and class: mean waits, median difference, correlation of ranks."""

Waits = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RecordedWaits:
    """A log with its recorded waits, and those under some policies.

    Attributes:
        arrival: int64 ``(num_jobs,)``, seconds, never falling.
        recorded: waits in seconds, int64 ``(num_jobs,)``.
        simulated: waits by the name of the rule, likewise.
        classes: of jobs, bool ``(num_jobs,)`` by name; a job may be in several.
        weeks: names of the weeks.
        partitions: of a site, like classes; none where no site is described.
    """

    arrival: NDArray[np.int64]
    recorded: Waits
    simulated: Mapping[str, Waits]
    classes: Mapping[str, NDArray[np.bool_]]
    weeks: Sequence[str]
    partitions: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)

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
    level = any((waits == waits[0]).all() for waits in (recorded, simulated))
    ranks = None if level else np.corrcoef(rankdata(recorded), rankdata(simulated))
    return {
        "jobs": float(recorded.size),
        "recorded": float(recorded.mean()),
        "simulated": float(simulated.mean()),
        "difference": float(np.median(off)),
        "near": float(near.mean()),
        "rank": float("nan") if ranks is None else float(ranks[0, 1]),
        "gain": 1 - float(off.mean()) / guessed if guessed else float("nan"),
    }


def in_all(log: RecordedWaits) -> Sheet:
    """Every rule with how near it comes, the smallest mean difference first.

    Where none is nearer than the recorded median, that would rank noise: they stay as given.
    """
    rows: list[dict[str, Any]] = []
    for name, waits in log.simulated.items():
        ratio = zip(("ratio", "ratio_low", "ratio_high"), _ratio(log, waits), strict=True)
        rows.append({"policy": name, **fidelity(log.recorded, waits), **dict(ratio)})
    ranked = not all(abs(row["gain"]) < SAME_GAIN for row in rows)
    if ranked:
        rows.sort(key=lambda row: float(np.abs(log.simulated[row["policy"]] - log.recorded).mean()))
    shown = ["policy", "recorded", "simulated", "ratio", "ratio_low", "ratio_high"]
    shown += ["difference", "rank", "gain"]
    note = (
        "mean waits and their ratio with its 95% interval over weeks; median difference of "
        "a job's wait; rank correlation; gain: accuracy over predicting the recorded "
        "median for every job"
    )
    if not ranked and len(rows) > 1:
        note += "; all gains are about 0, so policies keep the given order"
    title = "Simulated waits against recorded ones"
    return Sheet("fidelity", title, shown, rows, note, most=MOST_ROWS)


def verdict(best: Mapping[str, Any], num_policies: int) -> tuple[str, str]:
    """Whether a log can be replayed, and why, from the numbers of the rule that comes nearest.

    Args:
        best: a row of `in_all`.
        num_policies: that were tried.

    Returns:
        `GOOD`, `PARTLY` or `NOT`, and a sentence.
    """
    recorded, simulated, gain = best["recorded"], best["simulated"], best["gain"]
    which = "the one policy" if num_policies == 1 else f"the closest of {num_policies:,} policies"
    waits = (
        f"under {best['policy']}, {which}, the mean wait is {duration(simulated)}, at the "
        f"site {duration(recorded)}"
    )
    if max(recorded, simulated) < NEAR_S / 10:
        return (
            GOOD,
            f"{waits}; with so short waits, the site's order of the queue cannot be seen",
        )
    if np.isnan(gain):
        return NOT, f"{waits}, and there every job waits equally long, which no rule explains"
    low, high = _GOOD_RATIO
    mean_holds = low * recorded <= simulated <= high * recorded
    each = (
        f"the wait of a single job is predicted {gain:.0%} better than by the recorded median "
        "of all"
    )
    if gain < SAME_GAIN:
        each = "the wait of a single job is predicted no better than by the recorded median of all"
    if gain >= _GOOD_GAIN and mean_holds:
        return GOOD, f"{waits}; {each}"
    if gain >= _SOME_GAIN:
        return PARTLY, f"{waits}; {each}: trust the ranking of policies more than the numbers"
    why = "the means agree, but " if mean_holds else ""
    return NOT, f"{waits}; {why}{each}: something that is not simulated determines waits here"


@dataclass(frozen=True)
class Trust:
    """How far answers about a log deserve belief: a grade and its reason.

    Attributes:
        grade: ``good``, ``fair``, ``poor``, or ``unknown`` where there is nothing to compare with.
        why: a sentence without its full stop.
        recorded: mean recorded wait in seconds; NaN if it is unknown.
        simulated: the same under the policy that comes nearest.
        gain: see `fidelity`.
        policy: the one that comes nearest, of those that the site may have had.
    """

    grade: str
    why: str
    recorded: float = float("nan")
    simulated: float = float("nan")
    gain: float = float("nan")
    policy: str = ""

    @classmethod
    def of(
        cls,
        arrival: NDArray[np.int64],
        recorded: Waits | None,
        simulated: Mapping[str, Waits],
        *,
        as_it_was: bool,
    ) -> "Trust":
        """From the waits of jobs at the site and under policies, int64 ``(num_jobs,)``.

        Args:
            arrival: of the jobs, seconds, never falling.
            recorded: at the site; None if the log does not say them.
            simulated: under each policy that the site may have had.
            as_it_was: whether the jobs arrive as recorded.
        """
        if recorded is None:
            return cls(
                "unknown",
                "the log does not record waits, so nothing shows how near the simulation of today "
                "comes to the site",
            )
        if not as_it_was:
            return cls("unknown", "today's arrivals are scaled, and recorded waits are of others")
        waits = RecordedWaits(arrival, recorded, simulated, classes={}, weeks=())
        row = in_all(waits).rows[0]
        answer, why = verdict(row, len(simulated))
        numbers = {name: float(row[name]) for name in ("recorded", "simulated", "gain")}
        why = why.replace(", the one policy,", "")
        return cls(_GRADES[answer], why, **numbers, policy=str(row["policy"]))

    @property
    def sentence(self) -> str:
        """For people."""
        return f"Trust in these answers: {self.grade}; {self.why}."

    def too_small(self, change: float) -> list[str]:
        """A sentence where a change of the mean wait, in seconds, is less than today's error."""
        error = abs(self.simulated - self.recorded)
        if np.isnan(error) or abs(change) >= error:
            return []
        return [
            f"The change of the mean wait, {duration(change)}, is smaller than the error of the "
            f"simulation of today, {duration(error)}."
        ]

    def gained(self, policy: str, mean_wait: float) -> list[str]:
        """A sentence on how much of what a policy gains on the record is not its own.

        Args:
            policy: its name.
            mean_wait: of the jobs under it, in seconds.
        """
        gained, before = self.recorded - mean_wait, self.recorded - self.simulated
        if policy == self.policy or gained <= 0 or before <= 0:
            return []
        share = duration(before) if before < gained else "all"
        return [
            f"Compare policies with {self.policy}, not with the record: of the {duration(gained)} "
            f"that {policy} gains on the record, {share} is the error of the simulation."
        ]

    @property
    def data(self) -> dict[str, str | float | None]:
        """For programs; what is unknown is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def _ratio(log: RecordedWaits, waits: Waits) -> tuple[float, float, float]:
    """Simulated over recorded mean wait, with an interval over weeks where there are enough."""
    num_weeks = int(log.week[-1]) + 1
    recorded, simulated = (
        np.bincount(log.week, values, num_weeks).astype(np.float64)
        for values in (log.recorded, waits)
    )
    if not recorded.sum():
        return (float("nan"),) * 3
    found = jobset_interval(Pooled(simulated[recorded > 0], recorded[recorded > 0]))
    value = float(simulated.sum() / recorded.sum())
    enough = int((recorded > 0).sum()) >= FEWEST_WEEKS
    return (value, found.low, found.high) if enough else (value, float("nan"), float("nan"))


def by_week(log: RecordedWaits, name: str) -> Sheet:
    """Week by week, for one rule."""
    groups = {label: np.asarray(log.week == k) for k, label in enumerate(log.weeks)}
    note = "by the week of arrival; the machine is empty when the log begins"
    return _grouped(log, name, "week", groups, note)


def by_class(log: RecordedWaits, name: str) -> Sheet:
    """By size, requested time and queue, for one rule."""
    note = "narrow: at most a sixteenth of the machine, wide: more than a quarter"
    return _grouped(log, name, "class", log.classes, note)


def by_partition(log: RecordedWaits, name: str) -> Sheet:
    """By partition of a site, for one rule."""
    return _grouped(log, name, "partition", log.partitions, "")


def gains_over(pool: RecordedWaits, site: RecordedWaits) -> dict[str, float]:
    """The largest gain of any rule on one pool, and at the site: ``pool`` and ``site``."""
    return {
        name: max(fidelity(one.recorded, waits)["gain"] for waits in one.simulated.values())
        for name, one in (("pool", pool), ("site", site))
    }


def gain_sentence(gains: Mapping[str, float]) -> str:
    """What the description of a site brings."""
    if np.isnan([*gains.values()]).any():
        return "What the site's description gains cannot be seen: all jobs waited equally long."
    return (
        f"With the site's description the gain is {gains['site']:.2f}, as one pool of all "
        f"processors {gains['pool']:.2f}: {gains['site'] - gains['pool']:+.2f}."
    )


def _grouped(
    log: RecordedWaits, name: str, of: str, groups: Mapping[str, NDArray[np.bool_]], note: str
) -> Sheet:
    waits = log.simulated[name]
    rows = [
        {of: label, **fidelity(log.recorded[members], waits[members])}
        for label, members in groups.items()
        if members.any()
    ]
    title = f"By {of}, {name}"
    return Sheet(f"fidelity-by-{of}", title, [of, *_OF_GROUP], rows, note, most=MOST_ROWS)


def points(log: RecordedWaits, best: str, most: int = 3000) -> list[dict[str, str | float]]:
    """What a picture is drawn from, as rows of panel, series, x, label and y.

    Panels are ``weeks`` and ``classes`` (mean waits in s, x counts), ``waits`` (x in seconds, y the
    share of jobs at or below) and ``jobs`` (x recorded, y simulated wait in seconds, under the
    rule that is named, of evenly chosen jobs).
    """
    rows: list[dict[str, str | float]] = []
    of_all = {"recorded": log.recorded, **log.simulated}
    weeks = {label: log.week == k for k, label in enumerate(log.weeks)}
    for panel, groups in (("weeks", weeks), ("classes", log.classes)):
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
    chosen = np.unique(np.linspace(0, log.recorded.size - 1, most).astype(np.int64))
    for job in chosen:
        x, y = float(log.recorded[job]), float(log.simulated[best][job])
        rows.append({"panel": "jobs", "series": best, "x": x, "label": "", "y": y})
    return rows
