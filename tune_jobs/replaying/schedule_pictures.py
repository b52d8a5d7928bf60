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
from tune_jobs.replaying import crowds
from tune_jobs.replaying.description import Played
from tune_jobs.replaying.stretch import readable
from tune_jobs.tables.report import Picture

POINTS = 160
"""Stretches of a line in pictures over time."""

Tables = dict[str, Callable[[], pd.DataFrame]]
Pictures = dict[str, Picture]


def pictures_of(
    played: crowds.Jobs, jobs: RecordedJobs, processors: int, stretch: crowds.Stretch
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
    tables: Tables = {"waits": partial(crowds.waits, played, jobs.epoch, processors)}
    clock = "the log's clock" if jobs.epoch is None else "UTC"
    pictures = {"waits": Picture("waits", ["waits"], {"clock": clock})}
    for name in crowds.groups_of(played):
        table = f"waiting-by-{name}"
        tables[table] = partial(crowds.queues, played, name, edges_of(stretch))
        pictures[table] = Picture("queues", [table], {"by": name, **time})
    if len(played) > 1:
        tables["changes"] = partial(crowds.changes, played, processors)
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


def edges_of(stretch: crowds.Stretch) -> crowds.Edges:
    """The ends of the points of a line, seconds since the first submission, rising."""
    return np.unique(np.linspace(stretch.begin, stretch.end, POINTS + 1).astype(np.int64))


def origin_of(jobs: RecordedJobs) -> int | None:
    """Unix time of the first submission, where the log knows it."""
    return None if jobs.epoch is None else jobs.epoch + int(jobs.submit[0])
