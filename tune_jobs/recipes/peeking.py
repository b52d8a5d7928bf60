"""Whether a policy peeks: its starts must not change when the future does."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.world import World
from cluster_env.evaluation import evaluate

ARRIVALS, MOMENTS = 8_000, 8
"""Of so many first arrivals of a log, at most its earlier half, each of so many parts has a moment:
that at which most of its jobs wait."""

_NEVER = np.iinfo(np.int64).max


def peeks(
    make: Callable[[], Policy], world: World, jobset: JobSet, schedule: Schedule, run_seed: int
) -> str:
    """A sentence about the first start that depends on the future; empty if none does.

    Each time the policy plays the same jobs up to a moment. The jobs that come later are missing,
    and those that have not ended by then do so at once, or at the end of their estimates.

    Args:
        make: makes the policy anew.
        world: that it played in.
        jobset: all jobs.
        schedule: that it made of them.
        run_seed: of its random numbers then.
    """
    start = _times(schedule.job, schedule.start, jobset.num_jobs)
    finish = _times(schedule.job, schedule.finish, jobset.num_jobs)
    for moment in _busiest(jobset, start):
        other = _another_future(jobset, start, finish, moment)
        played = evaluate(make(), [other], world, run_seed=run_seed)
        again = _times(played.job, played.start, other.num_jobs)
        before = start[: other.num_jobs]
        changed = (np.minimum(before, again) <= moment) & (before != again)
        if changed.any():
            job = int(np.argmax(changed))
            return (
                f"it peeks: job {job} starts at another time if run times after {moment:,} s "
                f"change and later jobs are missing"
            )
    return ""


def _times(job: NDArray[np.int32], at: NDArray[np.int32], num_jobs: int) -> NDArray[np.int64]:
    """When something happened to each job; beyond all times where it never did."""
    times = np.full(num_jobs, _NEVER)
    times[job] = np.where(at < 0, _NEVER, at)
    return times


def _busiest(jobset: JobSet, start: NDArray[np.int64]) -> list[int]:
    """The moments."""
    arrival = jobset.arrival[: max(min(ARRIVALS, jobset.num_jobs // 2), 1)].astype(np.int64)
    started = np.searchsorted(np.sort(start), arrival, side="right")
    waiting = np.arange(1, arrival.size + 1) - started
    parts = np.array_split(np.arange(arrival.size), MOMENTS)
    return [int(arrival[part[np.argmax(waiting[part])]]) for part in parts if part.size]


def _another_future(
    jobset: JobSet, start: NDArray[np.int64], finish: NDArray[np.int64], moment: int
) -> JobSet:
    """The jobs up to a moment, with other run times of those that have not ended by then."""
    some = jobset.select(jobset.arrival <= moment, window=moment + 1)
    count = some.num_jobs
    duration = some.duration.astype(np.int64)
    estimate = np.maximum(some.attributes.get("estimate", duration), duration)
    ran = np.maximum(moment - start[:count], -1) + 1  # at least, as far as anybody can tell
    is_long = np.random.default_rng(0).integers(0, 2, count, dtype=bool)
    changed = np.where(is_long, np.maximum(estimate, ran + 1), ran + 1)
    other = np.where(finish[:count] > moment, changed, duration)
    return JobSet(
        some.arrival,
        other.astype(np.int32),
        some.demand,
        some.window,
        some.job_class,
        some.attributes,
    )
