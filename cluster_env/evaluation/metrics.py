"""What is measured of a schedule, by name.

A metric gives a value to each job, or to each episode, of a schedule; tables show means over all
jobs of all jobsets pooled (or over all episodes), never means of the jobsets' means. A job that had
not finished when its episode was cut counts with the time it has spent so far, which makes its
slowdown and completion time lower bounds, and it misses every "within"; ``unfinished`` is to be
shown beside, and ``slowdown_finished`` leaves such jobs out and says so in its name. A job that a
full backlog dropped (released code's rules) counts in the same way, as one that waited in vain from
its arrival to the end of the episode; the reward knows nothing of it.

An objective derives a metric (`Objective.metric`), so that a reward and what is measured under it
stand in one place, with the identities that tie them: `cluster_env.objectives.standard`. Here are
the metrics that no reward belongs to, and those that every table shows.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.metric import utilization, utilization_to_end
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.departures import DEPARTURES
from cluster_env.objectives import (
    OBJECTIVES,
    Metric,
    Objective,
    episode_cost,
    find_objective,
    is_small,
    read_mixture,
)
from cluster_env.objectives.standard import bounded_slowdown, slowdown

WITHIN = (1, 2, 3, 5)
"""Slowdowns for which the share of jobs at or below is measured."""

_SIZE_CLASSES = ("narrow", "medium", "wide")
SIZES = (*_SIZE_CLASSES, "small", "large")
"""Endings of metrics of jobs of one size."""


def by_size(metric: str, names: Iterable[str]) -> list[str]:
    """Those of some metrics that are a metric, of jobs of one size."""
    of_sizes = {f"{metric}_{size}" for size in SIZES}
    return [name for name in names if name in of_sizes]


def within(schedule: Schedule, slowdown: float) -> NDArray[np.float64]:
    """1 for each job that finished at or below a slowdown, else 0, float64 ``(num_jobs,)``."""
    # The quotient of two integers below 2**31 is at most a small integer only if it truly is.
    return (schedule.finished & (schedule.slowdown <= slowdown)).astype(np.float64)


def wait(schedule: Schedule) -> NDArray[np.float64]:
    """Time from arrival to start, or to the episode's end for a job that never started.

    float64 ``(num_jobs,)``.
    """
    end = schedule.end[schedule.episode]
    until = np.where(schedule.start >= 0, np.minimum(schedule.start, end), end)
    return (until - schedule.arrival).astype(np.float64)


def longest_wait(schedule: Schedule) -> NDArray[np.float64]:
    """The longest `wait` of each episode, float64 ``(num_episodes,)``; 0 without jobs."""
    longest = np.zeros(schedule.num_episodes)
    np.maximum.at(longest, schedule.episode, wait(schedule))
    return longest


def largest_slowdown(schedule: Schedule) -> NDArray[np.float64]:
    """The largest slowdown of each episode, float64 ``(num_episodes,)``; 0 without jobs."""
    largest = np.zeros(schedule.num_episodes)
    np.maximum.at(largest, schedule.episode, schedule.slowdown)
    return largest


def completion(schedule: Schedule) -> NDArray[np.float64]:
    """Time from arrival to finish, float64 ``(num_jobs,)``."""
    return schedule.completion.astype(np.float64)


def completion_at(schedule: Schedule, share: float) -> NDArray[np.float64]:
    """The completion time that a share of each episode's jobs are at or below; 0 without jobs.

    float64 ``(num_episodes,)``.
    """
    order = np.lexsort((schedule.completion, schedule.episode))
    count = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    place = np.cumsum(count) - count + np.maximum(np.ceil(share * count).astype(np.int64) - 1, 0)
    found = np.zeros(schedule.num_episodes)
    found[count > 0] = schedule.completion[order[place[count > 0]]]
    return found


def least_completion(schedule: Schedule) -> NDArray[np.float64]:
    """What no order of jobs can be faster than, float64 ``(num_jobs,)``.

    That is the duration, or the work over the capacity where a job asks for more than there is, as
    jobs of task graphs may.
    """
    share = (schedule.demand / schedule.capacity).max(axis=1, initial=1.0)
    return np.asarray(schedule.duration * share)


NARROW, MEDIUM, WIDE = range(3)


def size_class(schedule: Schedule) -> NDArray[np.int64]:
    """The `size_class_of` each job, int64 ``(num_jobs,)``."""
    return size_class_of(schedule.demand, schedule.capacity)


def size_class_of(demand: NDArray[Any], capacity: NDArray[Any]) -> NDArray[np.int64]:
    """Whether a job is narrow (0), medium (1) or wide (2), int64 ``(num_jobs,)``.

    A narrow job asks for at most a sixteenth of every resource, or for one unit of each, and a wide
    one for more than a quarter of any.

    Args:
        demand: integers ``(num_jobs, num_resources)``.
        capacity: of the machine, ``(num_resources,)``.
    """
    # One unit is narrow even where it is more than a sixteenth, as of a machine of four GPUs.
    share = demand / capacity
    narrow = ((share <= 1 / 16) | (demand <= 1)).all(axis=1)
    wide = ((share > 1 / 4) & (demand > 1)).any(axis=1)
    return np.where(narrow, NARROW, np.where(wide, WIDE, MEDIUM))


def has_size(schedule: Schedule, which: int) -> NDArray[np.bool_]:
    """Which jobs are of a `size_class`, bool ``(num_jobs,)``."""
    return np.asarray(size_class(schedule) == which)


METRICS: Registry[Metric] = Registry("metric")
"""What every table shows, in this order; any objective's metric can be asked for beside."""

_JOBS: dict[str, Callable[[Schedule], NDArray[np.bool_]]] = {
    "finished": lambda schedule: schedule.finished,
    "small": is_small,
    "large": lambda schedule: ~is_small(schedule),
}

for _metric in (
    OBJECTIVES.get("slowdown").metric,
    *(
        Metric(f"slowdown_{which}", f"mean slowdown of {which} jobs", "job", slowdown, counts)
        for which, counts in _JOBS.items()
    ),
    *(
        OBJECTIVES.get(name).metric
        for name in (
            *("bounded_slowdown", "completion_time", "weighted_completion_time"),
            *("duration_weighted_completion_time", "relative_completion_time"),
            *("relative_weighted_completion_time", "fair_slowdown", "makespan", "utilization"),
        )
    ),
    Metric(
        "utilization_to_end",
        "mean utilization to the last finish",
        "episode",
        utilization_to_end,
        higher_is_better=True,
    ),
    Metric(
        "idle", "mean idle share in the arrival window", "episode", lambda s: 1.0 - utilization(s)
    ),
    Metric("wait", "mean wait", "job", wait),
    Metric("longest_wait", "mean of the longest waits", "episode", longest_wait),
    Metric("largest_slowdown", "mean of the largest slowdowns", "episode", largest_slowdown),
    *(
        Metric(
            f"within_{limit}",
            f"share of jobs with slowdown at most {limit}",
            "job",
            partial(within, slowdown=limit),
            higher_is_better=True,
        )
        for limit in WITHIN
    ),
):
    METRICS.register(_metric.name)(_metric)


_NAMED = (
    *(
        Metric(
            f"{of}_{name}",
            f"mean {words} of {name} jobs",
            "job",
            values,
            partial(has_size, which=k),
        )
        for of, words, values in (
            ("bounded_slowdown", "bounded slowdown", bounded_slowdown),
            ("completion_time", "completion time (steps)", completion),
        )
        for k, name in enumerate(_SIZE_CLASSES)
    ),
    Metric(
        "completion_p95",
        "mean 95th percentile of completion times (steps)",
        "episode",
        partial(completion_at, share=0.95),
    ),
    Metric(
        "longest_completion",
        "mean of the longest completion times (steps)",
        "episode",
        partial(completion_at, share=1.0),
    ),
    Metric(
        "least_completion",
        "mean lower bound of completion times (steps)",
        "job",
        least_completion,
    ),
)
NAMED: Registry[Metric] = Registry("metric", {metric.name: metric for metric in _NAMED})
"""Those of worlds whose metrics name them: of jobs of each `size_class`, and of the slowest."""


def get_metric(name: str) -> Metric:
    """The metric of that name, which may also be that of any objective, mixture or family.

    Raises:
        InputError: if there is none.
    """
    tables = (METRICS, NAMED, DEPARTURES)
    for table in tables:
        if name in table.names():
            return table.get(name)
    objective = read_mixture(name) or find_objective(name)
    if objective is None:
        known_names = {entry for table in tables for entry in table.names()}
        raise unknown("metric", name, known_names | set(OBJECTIVES.names()))
    return objective.metric


def episode_means(metric: Metric, schedule: Schedule) -> NDArray[np.float64]:
    """A metric of each episode, float64 ``(num_episodes,)``: the mean over its jobs that count.

    NaN where none counts.
    """
    values = metric.values(schedule)
    if metric.per == "episode":
        return values
    # Jobs of a warm-up count for nothing, whatever the metric is.
    counted = schedule.counted
    if metric.counts is not None:
        counted = counted & metric.counts(schedule)
    values, episode = values[counted], schedule.episode[counted]
    # An episode without any has no mean, and a 1 in the place of its 0 saves a warning.
    count = np.bincount(episode, minlength=schedule.num_episodes)
    sums = np.bincount(episode, values, schedule.num_episodes)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def nonnegative_cost(objective: Objective) -> Metric:
    """The metric of an objective, turned where need be so that lower is better and none is below 0.

    Tables that divide costs by those of a baseline need that. A cost of zero is possible only where
    nothing waits at all; quotients of costs then mean nothing.

    * utilization: the idle share of the cluster inside the arrival window, 1 less it;
    * an objective with a gain from utilization beside other terms, or with gains of jobs that
      finish: what it costs (`episode_cost`), plus the gain of a window in full use and of all jobs,
      which no policy can change; so an idle share, or a job that does not finish, costs what it
      would have gained;
    * any other: its metric.
    """
    metric = objective.metric
    # Equal and not the same: objectives come to runners as copies.
    if metric == OBJECTIVES.get("utilization").metric:
        return METRICS.get("idle")
    if metric.higher_is_better:
        metric = episode_cost(objective)
    # What no policy can change: the gain of a window in full use, and of all jobs.
    gain = objective.utilization_gain if metric.per == "episode" else 0.0
    if not gain and not objective.gains_at_finish:
        return metric

    def shifted(schedule: Schedule) -> NDArray[np.float64]:
        values = metric.values(schedule)
        if gain:
            values = values + gain * schedule.window
        if not objective.gains_at_finish:
            return values
        gains = objective.gain_of_jobs(schedule)
        if metric.per == "job":
            return values + gains
        return values + np.bincount(schedule.episode, gains, minlength=schedule.num_episodes)

    return replace(metric, values=shifted)
