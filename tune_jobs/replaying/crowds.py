"""Who waits, when and for how long, as tables that pictures of schedules are drawn from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tune_jobs.replaying.description import size_classes
from tune_jobs.replaying.fidelity import LENGTHS, LIMITS_S
from tune_jobs.replaying.outcomes import AS_RECORDED, means_between

GROUPS = ("queue", "user", "group")
"""Columns of jobs that queues are split by, as far as a log has them."""

OTHERS = "others"
SAME_S = 60
"""A job whose start differs by no more starts as before: a site takes seconds for a decision."""

HOURS = 3
"""Hours of the day that waits are averaged over."""

_MOST_GROUPS = 6

Jobs = Mapping[str, pd.DataFrame]
"""What became of jobs, a row each, by policy: see `jobs_of` of a schedule."""

Edges = NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """A stretch of a log.

    Attributes:
        begin: seconds since the first submission.
        end: likewise.
        why: it is shown; empty where nobody has to be told.
    """

    begin: int
    end: int
    why: str = ""


def waits(played: Jobs, epoch: int | None, processors: int) -> pd.DataFrame:
    """Mean waits by size and hour of the day, a row for each policy, size and stretch of hours.

    The hour is that of the log's clock, whose second 0 may be known as a Unix time.
    """
    frames = []
    for policy, jobs in played.items():
        size, labels = size_classes(jobs["processors"].to_numpy(), processors)
        hour = (jobs["submit"] + (epoch or 0)) // 3600 % 24 // HOURS * HOURS
        means = jobs["wait"].where(jobs["start"] >= 0).groupby([size, hour]).agg(["size", "mean"])
        means = means.set_axis(["jobs", "mean_wait"], axis=1).rename_axis(["size", "hour"])
        means = means.reset_index()
        frames.append(means.assign(policy=policy, size=[labels[k] for k in means["size"]]))
    return pd.concat(frames)[["policy", "size", "hour", "jobs", "mean_wait"]]


def groups_of(played: Jobs) -> list[str]:
    """Columns by which waiting jobs of several groups can be told apart."""
    first = next(iter(played.values()))
    if not any(jobs["wait"].any() for jobs in played.values()):
        return []
    return [name for name in GROUPS if name in first and first[name].nunique() > 1]


def queues(played: Jobs, by: str, edges: Edges) -> pd.DataFrame:
    """Mean waiting jobs of groups in stretches of time, a row for each policy, group and stretch.

    Those that waited most under the first policy have names, all others are one group.

    Args:
        played: jobs by policy.
        by: the column of groups.
        edges: of the stretches, seconds since the first submission, rising.
    """
    first = next(iter(played.values()))
    total = first["wait"].clip(lower=0).groupby(first[by]).sum()
    named = list(total.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS])
    frames = []
    for policy, jobs in played.items():
        begin = (jobs["eligible"] - jobs["submit"].min()).to_numpy(np.int64)
        never = max(int(edges[-1]), int(begin.max()))
        start = (jobs["start"] - jobs["submit"].min()).where(jobs["start"] >= 0, never)
        end = start.to_numpy(np.int64)
        others = ~jobs[by].isin(named).to_numpy()
        members = {str(name): (jobs[by] == name).to_numpy() for name in named}
        for name, inside in {**members, **({OTHERS: others} if others.any() else {})}.items():
            columns = {"policy": policy, "group": name or "(none)"}
            stretches = {"begin_s": edges[:-1], "end_s": edges[1:]}
            waiting = means_between(begin[inside], end[inside], 1.0, edges)
            frames.append(pd.DataFrame({**columns, **stretches, "queue": waiting}))
    return pd.concat(frames)


def changes(played: Jobs, processors: int) -> pd.DataFrame:
    """Whose waits changed, a row for each policy, size and length: against the record or the first.

    Jobs count that started under both. ``change`` is the mean change of their waits in seconds,
    ``earlier`` and ``later`` are shares of them, by more than `SAME_S`.
    """
    reference = AS_RECORDED if AS_RECORDED in played else next(iter(played))
    rows = [
        {"policy": policy, "against": reference, **row}
        for policy, jobs in played.items()
        if policy != reference
        for row in _changes(jobs, played[reference], processors)
    ]
    return pd.DataFrame(rows)


def _changes(jobs: pd.DataFrame, before: pd.DataFrame, processors: int) -> Iterator[dict[str, Any]]:
    both = jobs[(jobs["start"] >= 0) & (before["start"].reindex(jobs.index) >= 0)]
    change = both["wait"] - before["wait"].reindex(both.index)
    size, labels = size_classes(both["processors"].to_numpy(), processors)
    length = np.searchsorted(np.asarray(LIMITS_S), both["estimate"], side="left")
    for (of_size, of_length), part in change.groupby([size, length]):
        yield {
            "size": labels[of_size],
            "length": LENGTHS[of_length],
            "jobs": len(part),
            "change": float(part.mean()),
            "earlier": float((part < -SAME_S).mean()),
            "later": float((part > SAME_S).mean()),
        }


def fullest(played: Jobs, num_days: int, stretch: Stretch, midnight: int) -> int:
    """Where the part of so many days begins in which most processors are in use under the first.

    Days begin so many seconds before the first submission, and each day after.
    """
    jobs = next(iter(played.values()))
    start = (jobs["start"] - jobs["submit"].min()).where(jobs["start"] >= 0, stretch.end)
    begin = start.to_numpy(np.int64)
    end = begin + np.where(jobs["start"] >= 0, jobs["duration"], 0)
    edges = np.arange(-midnight, stretch.end + 86_400, 86_400, dtype=np.int64)
    edges = edges[edges > stretch.begin - 86_400]
    in_use = means_between(begin, end, jobs["processors"].to_numpy(), edges)
    return int(edges[int(np.argmax(np.convolve(in_use, np.ones(num_days), "valid")))])
