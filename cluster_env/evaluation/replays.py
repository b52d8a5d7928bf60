"""What became of the jobs of one long episode, such as a whole log: in all, by size, by user."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule
from cluster_env.core.sheets import COUNT, RATIO, SECONDS, SHARE, TEXT
from cluster_env.core.timelines import means_between
from cluster_env.evaluation.metrics import bounded_slowdown, makespan, size_class, wait
from cluster_env.objectives.metric import utilization_until

OUTCOME = {
    "policy": TEXT,
    "bounded_slowdown": RATIO,
    "mean_wait": SECONDS,
    "longest_wait": SECONDS,
    "turnaround": SECONDS,
    "utilization": SHARE,
    "to_end": SHARE,
    "makespan": SECONDS,
}
"""Columns of what `outcome` gives that every table shows, with their units."""

OF_JOBS = {
    "jobs": COUNT,
    "bounded_slowdown": RATIO,
    "mean_wait": SECONDS,
    "longest_wait": SECONDS,
    "turnaround": SECONDS,
}
"""Columns of what `of_groups` gives, with their units."""

SIZES = ("narrow", "medium", "wide")
"""Names of the values of `size_class`."""


def outcome(schedule: Schedule, resources: Sequence[str]) -> dict[str, float]:
    """The numbers of one episode.

    ``utilization`` is that inside the arrival window, ``to_end`` that up to the last finish, mean
    over resources and then of each; ``makespan`` is the time from the beginning to the last finish.
    Jobs that had not finished count with the time they had spent.
    """
    end = makespan(schedule)
    slowdown, waited = bounded_slowdown(schedule), wait(schedule)
    inside = utilization_until(schedule, schedule.window)[0]
    to_end = utilization_until(schedule, np.maximum(end, 1))[0]
    found = {
        "bounded_slowdown": float(slowdown.mean()),
        "mean_wait": float(waited.mean()),
        "longest_wait": float(waited.max()),
        "turnaround": float(schedule.completion.mean()),
        "utilization": float(inside.mean()),
        "to_end": float(to_end.mean()),
        "makespan": float(end[0]),
        "median_wait": float(np.median(waited)),
        "wait_95": float(np.quantile(waited, 0.95)),
        "bounded_slowdown_95": float(np.quantile(slowdown, 0.95)),
        "jobs": float(schedule.job.size),
        "unfinished": float((~schedule.finished).sum()),
    }
    for name, a, b in zip(resources, inside, to_end, strict=True):
        found |= {f"utilization_{name}": float(a), f"to_end_{name}": float(b)}
    return found


def of_groups(schedule: Schedule, group: NDArray[Any], count: int) -> list[dict[str, float]]:
    """The numbers of groups of jobs.

    Args:
        schedule: one episode.
        group: of each job, integers ``(num_jobs,)`` from 0.
        count: how many groups there are; those without a job have no means.

    Returns:
        For each group ``jobs``, ``bounded_slowdown``, ``mean_wait``, ``longest_wait``,
        ``turnaround`` and ``work`` (processors times seconds).
    """
    num = np.bincount(group, minlength=count)
    waited = wait(schedule)
    longest = np.zeros(count)
    np.maximum.at(longest, group, waited)
    work = schedule.duration.astype(np.float64) * schedule.demand[:, 0]
    known = np.where(num > 0, num, np.nan)
    sums = {
        "bounded_slowdown": bounded_slowdown(schedule),
        "mean_wait": waited,
        "turnaround": schedule.completion.astype(np.float64),
    }
    means = {
        name: np.bincount(group, values, minlength=count) / known for name, values in sums.items()
    }
    total = np.bincount(group, work, minlength=count)
    return [
        {
            "jobs": float(num[k]),
            **{name: float(values[k]) for name, values in means.items()},
            "longest_wait": float(longest[k]) if num[k] else float("nan"),
            "work": float(total[k]),
        }
        for k in range(count)
    ]


def of_sizes(schedule: Schedule) -> dict[str, dict[str, float]]:
    """The numbers of narrow, medium and wide jobs."""
    return dict(zip(SIZES, of_groups(schedule, size_class(schedule), len(SIZES)), strict=True))


def timeline(schedule: Schedule, edges: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Means of stretches of time: ``utilization`` (over resources), ``queue`` (jobs that wait).

    Args:
        schedule: one episode.
        edges: of the stretches, rising, ``(num_stretches + 1,)``.

    Returns:
        float64 ``(num_stretches,)`` each.
    """
    arrival = schedule.arrival.astype(np.int64)
    started = schedule.start >= 0
    start = np.where(started, schedule.start, schedule.end[schedule.episode]).astype(np.int64)
    over = np.where(started, start + schedule.duration, start)
    share = (schedule.demand / schedule.capacity).mean(axis=1)
    return {
        "utilization": means_between(start, over, share, edges),
        "queue": means_between(arrival, start, 1.0, edges),
    }
