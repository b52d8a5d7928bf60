"""Whether a policy peeks: its starts must not change when the future does."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.world import World
from cluster_env.evaluation import evaluate

ARRIVALS = (1_000, 10_000)
"""A moment is chosen among these first arrivals of a log, of the earlier half at most: the one at
which most jobs wait."""

_NEVER = np.iinfo(np.int64).max


def peeks(
    make: Callable[[], Policy], world: World, jobset: JobSet, schedule: Schedule, run_seed: int
) -> str:
    """A sentence about the first start that depends on the future; empty if none does.

    Each time the policy plays the same jobs up to a moment. The jobs that come later are missing,
    and those that have not ended by then run for other times within their estimates.

    Args:
        make: makes the policy anew.
        world: that it played in.
        jobset: all jobs.
        schedule: that it made of them.
        run_seed: of its random numbers then.
    """
    start = _times(schedule.job, schedule.start, jobset.num_jobs)
    finish = _times(schedule.job, schedule.finish, jobset.num_jobs)
    for moment in dict.fromkeys(_busiest(jobset, start, most) for most in ARRIVALS):
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


def _busiest(jobset: JobSet, start: NDArray[np.int64], most: int) -> int:
    """The arrival, of so many first ones, at which most jobs wait."""
    most = max(min(most, jobset.num_jobs // 2), 1)
    arrival = jobset.arrival[:most].astype(np.int64)
    started = np.searchsorted(np.sort(start), arrival, side="right")
    return int(arrival[np.argmax(np.arange(1, arrival.size + 1) - started)])


def _another_future(
    jobset: JobSet, start: NDArray[np.int64], finish: NDArray[np.int64], moment: int
) -> JobSet:
    """The jobs up to a moment; those that have not ended by then run for another time."""
    some = jobset.select(jobset.arrival <= moment, window=moment + 1)
    count = some.num_jobs
    duration = some.duration.astype(np.int64)
    estimate = np.maximum(some.attributes.get("estimate", duration), duration)
    ran = np.maximum(moment - start[:count], -1) + 1  # at least, as far as anybody can tell
    draws = np.random.default_rng(0).random(count)
    # As logarithms, so that short runs are as likely as they are in logs.
    longer = np.exp(draws * np.log(np.maximum(estimate - ran, 1))).astype(np.int64)
    other = np.where(finish[:count] > moment, ran + longer, duration)
    return JobSet(
        some.arrival,
        other.astype(np.int32),
        some.demand,
        some.window,
        some.job_class,
        some.attributes,
    )
