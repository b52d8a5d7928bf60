"""Pictures of schedules of a log, the time that they show, and the tables behind them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.durations import duration, seconds_of
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.schedule import Schedule
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying import crowds
from tune_jobs.replaying.description import Played
from tune_jobs.replaying.outcomes import AS_RECORDED
from tune_jobs.tables.report import Picture

POINTS = 160
"""Stretches of a line in pictures over time."""

Tables = dict[str, Callable[[], pd.DataFrame]]
Pictures = dict[str, Picture]

DAY_S, WEEK = 86_400, 7
OPEN = 2**62
"""End of a stretch that ends with the schedules."""

_WHOLE_S, _WHOLE_JOBS = 14 * DAY_S, 1000  # what a chart of single jobs shows as a whole


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


def stretch_of(jobs: RecordedJobs, since: str, until: str) -> crowds.Stretch:
    """What a user wants to see: all of a log, or from and to a date or time.

    Args:
        jobs: of the log.
        since: a date such as 2024-03-01 or 2024-03-01T12:00 (UTC), a time since the first
            submission such as 5d, or seconds of it; empty for the beginning.
        until: likewise; empty for the end, `OPEN`.

    Raises:
        InputError: if one of them is no such time, or no job is submitted before the one or after
            the other.
    """
    begin = max(_seconds("--from", since, jobs), 0) if since else 0
    end = _seconds("--to", until, jobs) if until else OPEN
    if not begin < min(end, jobs.span):
        raise InputError(
            f"nothing of the log lies between --from {since or 'its beginning'} and --to "
            f"{until or 'its end'}: it lasts {duration(jobs.span)}{_dates(jobs)}"
        )
    return crowds.Stretch(begin, end)


def readable(played: crowds.Jobs, stretch: crowds.Stretch, origin: int | None) -> crowds.Stretch:
    """The part of a stretch in which single jobs can be seen: all of it, or its fullest week.

    Days begin at midnight where the Unix time of the first submission is known.
    """
    num_jobs = len(next(iter(played.values())))
    if stretch.end - stretch.begin <= _WHOLE_S or num_jobs <= _WHOLE_JOBS:
        return stretch
    begin = crowds.fullest(played, WEEK, stretch, (origin or 0) % DAY_S)
    name = next(iter(played))
    words = name if name == AS_RECORDED else f"under {name}"
    end = min(begin + WEEK * DAY_S, stretch.end)
    why = f"the week with most processors in use {words} (--from, --to: others)"
    return crowds.Stretch(max(begin, 0), end, why)


def _seconds(option: str, text: str, jobs: RecordedJobs) -> int:
    """Seconds since the first submission."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return seconds_of(text)
        except InputError:
            raise InputError(
                f"{option} takes a date such as 2024-03-01, seconds since the first submission, or "
                f"a time since it such as 5d, not '{shortened(text)}'"
            ) from None
    if jobs.epoch is None:
        raise InputError(
            f"{jobs.path} does not say on which date it begins, so {option} takes a time since the "
            f"first submission such as 5d, not {shortened(text)}"
        )
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) - jobs.epoch - int(jobs.submit[0])


def _dates(jobs: RecordedJobs) -> str:
    if jobs.epoch is None:
        return ""
    ends = (jobs.epoch + int(at) for at in (jobs.submit[0], jobs.submit[-1]))
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in ends)
    return f", from {first} to {last}"


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
