"""What every schedule must satisfy, computed from the schedule and the jobsets alone.

Nothing here knows how a simulator works, so that a fault of a simulator cannot hide itself.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule


class ScheduleFault(ValueError):
    """A schedule breaks a rule that holds for every cluster; the fault is the simulator's."""


def check_schedule(
    schedule: Schedule, jobsets: Sequence[JobSet], complete_until: int | None = None
) -> None:
    """Makes sure that a schedule could have happened.

    Each job that arrived while its episode lasted is there exactly once and as its jobset says. It
    starts when it has arrived or later, runs for its whole length without a pause, and counts as
    finished exactly if that was before the episode ended. The jobs that run at one time never hold
    more than the capacity; a job that finishes at some time makes room for one that starts then.

    Args:
        schedule: jobs of ended episodes, in any order.
        jobsets: those that ``schedule.jobset`` counts.
        complete_until: if given, an episode that ended at this clock or before must have finished
            all jobs of its jobset; for rules that end an episode when all is done and drop no
            job, this is the ``max_time`` of the simulator.

    Raises:
        ScheduleFault: for the first rule that is broken; the message names a job and an episode.
    """
    for broken, what in _rules(schedule, jobsets, complete_until):
        if broken.any():
            first = int(np.argmax(broken))
            raise ScheduleFault(
                f"job {schedule.job[first]} of episode {schedule.episode[first]} {what}"
            )


def _rules(
    schedule: Schedule, jobsets: Sequence[JobSet], complete_until: int | None
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Which jobs break a rule, bool ``(n,)``, and the rest of the sentence; rule by rule."""
    yield from _same_jobs(schedule, jobsets)
    _all_present(schedule, jobsets)
    started = schedule.start >= 0
    full_finish = schedule.start + schedule.duration
    end = schedule.end[schedule.episode]
    yield started & (schedule.start < schedule.arrival), "starts before it arrives"
    yield schedule.finished & ~started, "finishes without a start"
    yield schedule.finished & (schedule.finish != full_finish), "does not run for its whole length"
    yield schedule.finished & (schedule.finish > end), "finishes after the end of its episode"
    yield (
        started & (full_finish <= end) & ~schedule.finished,
        "has run to its end but is not finished",
    )
    yield _over_capacity(schedule), "starts when the cluster has no room for it"
    if complete_until is not None:
        yield (
            ~schedule.finished & (end <= complete_until),
            "never finishes though its episode is over",
        )


def _same_jobs(
    schedule: Schedule, jobsets: Sequence[JobSet]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Each entry is a job of its jobset, with that job's arrival, duration, demand and class."""
    first = np.cumsum([0] + [jobset.num_jobs for jobset in jobsets])
    jobset = schedule.jobset[schedule.episode]
    known = (schedule.job >= 0) & (schedule.job < np.diff(first)[jobset])
    yield ~known, "is not in its jobset"
    place = first[jobset] + schedule.job
    for name in ("arrival", "duration", "demand", "job_class"):
        given = np.concatenate([getattr(jobset, name) for jobset in jobsets])
        differs = getattr(schedule, name) != given[place]
        wrong = differs.any(axis=1) if differs.ndim == 2 else differs
        word = name.removeprefix("job_")
        yield wrong, f"has another {word} than in its jobset"


def _all_present(schedule: Schedule, jobsets: Sequence[JobSet]) -> None:
    """Each job that arrived before the end of an episode is there once, and no job twice."""
    pair = np.stack([schedule.episode, schedule.job], axis=1)
    unique, times = np.unique(pair, axis=0, return_counts=True)
    if np.any(times > 1):
        episode, job = unique[int(np.argmax(times > 1))]
        raise ScheduleFault(f"job {job} of episode {episode} is there {times.max()} times")
    count = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    for episode, (k, end) in enumerate(zip(schedule.jobset, schedule.end, strict=True)):
        arrival = jobsets[k].arrival
        # Jobs arrive in the order of their numbers; none arrives in the last instant of an episode.
        if not np.sum(arrival < end) <= count[episode] <= np.sum(arrival <= end):
            raise ScheduleFault(
                f"episode {episode} has {count[episode]} jobs, but {np.sum(arrival < end)} of its "
                f"jobset arrived before its end at {end}"
            )


def _over_capacity(schedule: Schedule) -> NDArray[np.bool_]:
    """Which jobs start when there is no room for them, bool ``(n,)``."""
    jobs = np.flatnonzero(schedule.start >= 0)
    time = np.concatenate([schedule.start[jobs] + schedule.duration[jobs], schedule.start[jobs]])
    takes = np.repeat([False, True], jobs.size)
    owner = np.concatenate([jobs, jobs])
    order = np.lexsort((takes, time, schedule.episode[owner]))
    change = np.where(takes[:, None], 1, -1) * schedule.demand[owner].astype(np.int64)
    # Every episode gives back all that it takes, so one running sum serves them all.
    held = np.cumsum(change[order], axis=0)
    broken = np.zeros(schedule.start.size, np.bool_)
    broken[owner[order][(held > schedule.capacity).any(axis=1)]] = True
    return broken
