"""Pictures of schedules of a log, and the tables that they are drawn from."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying.description import Played
from tune_jobs.replaying.fidelity import LENGTHS, LIMITS_S
from tune_jobs.replaying.outcomes import AS_RECORDED, means_between, size_classes
from tune_jobs.replaying.stretch import Jobs, Stretch, readable
from tune_jobs.tables.report import Picture

POINTS = 160
"""Stretches of a line in pictures over time."""

GROUPS = ("queue", "user", "group")
"""Columns of jobs that queues are split by, as far as a log has them."""

OTHERS = "others"
SAME_S = 60
"""A job whose start differs by no more starts as before: a site takes seconds for a decision."""

HOURS = 3
"""Hours of the day that waits are averaged over."""

_MOST_GROUPS = 6

Edges = NDArray[np.int64]
Tables = dict[str, Callable[[], pd.DataFrame]]
Pictures = dict[str, Picture]


def pictures_of(
    played: Jobs, jobs: RecordedJobs, processors: int, stretch: Stretch
) -> tuple[Tables, Pictures]:
    """Schedules with a Gantt chart each; waits by size and hour; queues; changes of waits.

    Args:
        played: what became of the jobs, by policy, or as recorded.
        jobs: of the log.
        processors: of the machine.
        stretch: what pictures over time show.

    Returns:
        Tables and pictures by name, as a `Report` has them.
    """
    time: dict[str, Any] = {"origin": origin_of(jobs)}
    near = readable(played, stretch, time["origin"])
    tables: Tables = {"waits": partial(_waits, played, jobs.epoch, processors)}
    clock = "the log's clock" if jobs.epoch is None else "UTC"
    pictures = {"waits": Picture("waits", ["waits"], {"clock": clock})}
    for name in _groups_of(played):
        table = f"waiting-by-{name}"
        tables[table] = partial(_queues, played, name, edges_of(stretch))
        pictures[table] = Picture("queues", [table], {"by": name, **time})
    if len(played) > 1:
        tables["changes"] = partial(_changes, played, processors)
        pictures["changes"] = Picture("changes", ["changes"])
    within = {"begin": near.begin, "end": near.end, "why": near.why}
    for policy, frame in played.items():
        file = re.sub(r"[^\w.-]+", "-", policy).strip("-")
        tables[f"schedule-{file}"] = partial(pd.DataFrame, frame)
        options = {"processors": processors, "policy": policy, **within, **time}
        pictures[f"gantt-{file}"] = Picture("gantt", [f"schedule-{file}"], options)
    return tables, pictures


def jobs_of(schedule: Schedule, jobs: RecordedJobs) -> pd.DataFrame:
    """What became of each job, in whole seconds of the log's clock; rows are those of the log.

    A job is ``eligible`` when it may start, and ``wait`` counts from then; -1: never.
    """
    started, finished = schedule.start >= 0, schedule.finish >= 0
    eligible = schedule.arrival + jobs.submit[0]
    start = np.where(started, schedule.start + jobs.submit[0], -1)
    finish = np.where(finished, schedule.finish + jobs.submit[0], -1)
    return _table(jobs, schedule.job, eligible, start, finish, schedule.duration)


def jobs_started(jobs: RecordedJobs, played: Played) -> pd.DataFrame:
    """The same of a whole log all of whose jobs started."""
    rows = np.arange(jobs.num_jobs)
    start = played.start
    return _table(jobs, rows, start - played.wait, start, start + jobs.run, jobs.run)


def _table(
    jobs: RecordedJobs,
    rows: NDArray[Any],
    eligible: NDArray[Any],
    start: NDArray[Any],
    finish: NDArray[Any],
    duration: NDArray[Any],
) -> pd.DataFrame:
    columns: dict[str, NDArray[Any]] = {
        "line": jobs.line[rows],
        "submit": jobs.submit[rows],
        "eligible": eligible,
        "start": start,
        "finish": finish,
        "wait": np.where(start >= 0, start - eligible, -1),
        "duration": duration,
        "estimate": jobs.estimate[rows],
        **{name: jobs.demand[rows, k] for k, name in enumerate(jobs.resources)},
        **{name: jobs.names[name][numbers[rows]] for name, numbers in jobs.ids.items()},
    }
    return pd.DataFrame(columns, index=rows)


def _waits(played: Jobs, epoch: int | None, processors: int) -> pd.DataFrame:
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


def _groups_of(played: Jobs) -> list[str]:
    """Columns by which waiting jobs of several groups can be told apart."""
    first = next(iter(played.values()))
    if not any(jobs["wait"].any() for jobs in played.values()):
        return []
    return [name for name in GROUPS if name in first and first[name].nunique() > 1]


def _queues(played: Jobs, by: str, edges: Edges) -> pd.DataFrame:
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


def _changes(played: Jobs, processors: int) -> pd.DataFrame:
    """Whose waits changed, a row for each policy, size and length: against the record or the first.

    Jobs count that started under both. ``change`` is the mean change of their waits in seconds,
    ``earlier`` and ``later`` are shares of them, by more than `SAME_S`.
    """
    reference = AS_RECORDED if AS_RECORDED in played else next(iter(played))
    before, rows = played[reference], list[dict[str, Any]]()
    for policy, jobs in played.items():
        if policy == reference:
            continue
        both = jobs[(jobs["start"] >= 0) & (before["start"].reindex(jobs.index) >= 0)]
        change = both["wait"] - before["wait"].reindex(both.index)
        size, labels = size_classes(both["processors"].to_numpy(), processors)
        length = np.searchsorted(np.asarray(LIMITS_S), both["estimate"], side="left")
        for (of_size, of_length), part in change.groupby([size, length]):
            rows.append(
                {
                    **{"policy": policy, "against": reference, "size": labels[of_size]},
                    **{"length": LENGTHS[of_length], "jobs": len(part)},
                    "change": float(part.mean()),
                    "earlier": float((part < -SAME_S).mean()),
                    "later": float((part > SAME_S).mean()),
                }
            )
    return pd.DataFrame(rows)


def edges_of(stretch: Stretch) -> Edges:
    """The ends of the points of a line, seconds since the first submission, rising."""
    return np.unique(np.linspace(stretch.begin, stretch.end, POINTS + 1).astype(np.int64))


def origin_of(jobs: RecordedJobs) -> int | None:
    """Unix time of the first submission, where the log knows it."""
    return None if jobs.epoch is None else jobs.epoch + int(jobs.submit[0])
