"""The time of a log that pictures show."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from cluster_env.core.durations import duration, seconds_of
from cluster_env.core.errors import InputError, shortened
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying.outcomes import AS_RECORDED, means_between

DAY_S, WEEK = 86_400, 7
OPEN = 2**62
"""End of a stretch that ends with the schedules."""

_WHOLE_S, _WHOLE_JOBS = 14 * DAY_S, 1000  # what a chart of single jobs shows as a whole

Jobs = Mapping[str, pd.DataFrame]
"""What became of jobs, a row each, by policy: see `schedule_pictures.jobs_of`."""


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


def stretch_of(jobs: RecordedJobs, since: str, until: str) -> Stretch:
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
    return Stretch(begin, end)


def readable(played: Jobs, stretch: Stretch, origin: int | None) -> Stretch:
    """The part of a stretch in which single jobs can be seen: all of it, or its fullest week.

    Days begin at midnight where the Unix time of the first submission is known.
    """
    num_jobs = len(next(iter(played.values())))
    if stretch.end - stretch.begin <= _WHOLE_S or num_jobs <= _WHOLE_JOBS:
        return stretch
    begin = _fullest(played, WEEK, stretch, (origin or 0) % DAY_S)
    name = next(iter(played))
    words = name if name == AS_RECORDED else f"under {name}"
    end = min(begin + WEEK * DAY_S, stretch.end)
    why = f"the week with most processors in use {words} (--from, --to: others)"
    return Stretch(max(begin, 0), end, why)


def _fullest(played: Jobs, num_days: int, stretch: Stretch, midnight: int) -> int:
    """Where the part of so many days begins in which most processors are in use under the first.

    Days begin so many seconds before the first submission, and each day after.
    """
    jobs = next(iter(played.values()))
    start = (jobs["start"] - jobs["submit"].min()).where(jobs["start"] >= 0, stretch.end)
    begin = start.to_numpy(np.int64)
    end = begin + np.where(jobs["start"] >= 0, jobs["duration"], 0)
    edges = np.arange(-midnight, stretch.end + DAY_S, DAY_S, dtype=np.int64)
    edges = edges[edges > stretch.begin - DAY_S]
    in_use = means_between(begin, end, jobs["processors"].to_numpy(), edges)
    return int(edges[int(np.argmax(np.convolve(in_use, np.ones(num_days), "valid")))])


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
