"""Schedules that are written down, and what two of them have in common."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule


def schedule_of(
    jobset: JobSet,
    start: Sequence[int],
    end: int,
    capacity: Sequence[int],
    *,
    finish: Sequence[int] | None = None,
    pieces: Pieces | None = None,
) -> Schedule:
    """One episode of a jobset.

    Args:
        jobset: its jobs, all of which have arrived by the end.
        start: of each job, -1 if it never starts.
        end: of the episode.
        capacity: units of each resource.
        finish: of each job; by default each that starts runs for its duration, and has not
            finished if the episode ends before.
        pieces: what jobs really held.
    """
    begin = np.array(start, np.int32)
    # Copies, which may be written as those of simulators: others would be compiled for anew.
    arrival, duration, demand = (
        column.copy() for column in (jobset.arrival, jobset.duration, jobset.demand)
    )
    if finish is None:
        done = (begin >= 0) & (begin + jobset.duration <= end)
        finish = np.where(done, begin + jobset.duration, -1).tolist()
    return Schedule(
        episode=np.zeros(jobset.num_jobs, np.int32),
        job=np.arange(jobset.num_jobs, dtype=np.int32),
        arrival=arrival,
        start=begin,
        finish=np.array(finish, np.int32),
        duration=duration,
        demand=demand,
        end=np.int32([end]),
        window=np.int32([jobset.window]),
        jobset=np.zeros(1, np.int32),
        capacity=np.array(capacity, np.int32),
        job_class=jobset.job_class,
        attributes=jobset.attributes,
        pieces=pieces,
    )


def in_order(schedule: Schedule, rows: Any) -> Schedule:
    """The same jobs, in another order of their rows."""
    names = ("episode", "job", "arrival", "start", "finish", "duration", "demand", "job_class")
    attributes = {name: column[rows] for name, column in schedule.attributes.items()}
    columns = {name: getattr(schedule, name)[rows] for name in names}
    return replace(schedule, **columns, attributes=attributes)


def assert_same_schedule(one: Schedule, other: Schedule) -> None:
    """The same jobs run at the same times, and hold the same meanwhile."""
    for name in ("episode", "job", "start", "finish", "end"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert (one.pieces is None) == (other.pieces is None)
    if one.pieces is not None:
        for name in ("job", "begin", "end", "units", "node"):
            np.testing.assert_array_equal(
                getattr(one.pieces, name), getattr(other.pieces, name), name
            )
