r"""What is measured of a schedule, by name.

A metric gives a value to each job, or to each episode, of a schedule; tables show means over all
jobs of all jobsets pooled (or over all episodes), never means of the jobsets' means. A job that had
not finished when its episode was cut counts with the time it has spent so far, which makes its
slowdown and completion time lower bounds, and it misses every "within"; ``unfinished`` is to be
shown beside, and ``slowdown_finished`` leaves such jobs out and says so in its name. A job that a
full backlog dropped (released code's rules) counts in the same way, as one that waited in vain from
its arrival to the end of the episode; the reward knows nothing of it.

The identities that tie metrics and rewards, for one episode that finishes all jobs under the
paper's rules, without discounting (see `cluster_env.objectives.objective`):

===================  ==========================================
objective            return
===================  ==========================================
``slowdown``         :math:`-\sum` of ``slowdown`` over jobs
``completion_time``  :math:`-\sum` of ``completion_time`` over jobs
``makespan``         :math:`-` ``makespan``
``utilization``      window :math:`\times` ``utilization``
===================  ==========================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.registry import Registry
from cluster_env.core.schedule import Schedule

SMALL_AT_MOST = 5
"""Longest duration of a small job, in time steps: DeepRM's short jobs last 1-3, its long 10-15."""

BOUND_STEPS = 10
"""Durations below this count as this in the bounded slowdown, in time steps."""

WITHIN = (1, 2, 3, 5)
"""Slowdowns for which the share of jobs at or below is measured."""

Values = Callable[[Schedule], NDArray[np.float64]]
Selection = Callable[[Schedule], NDArray[np.bool_]]


@dataclass(frozen=True)
class Metric:
    """Something that is measured.

    Attributes:
        name: what tables, CSV files and trackers call it.
        label: what figures call it.
        per: whether there is one value for each job or for each episode.
        values: the values, float64 ``(num_jobs,)`` or ``(num_episodes,)``.
        counts: which of them belong to the mean, bool of the same shape; all if unset.
        higher_is_better: whether a larger mean is better.
    """

    name: str
    label: str
    per: Literal["job", "episode"]
    values: Values
    counts: Selection | None = None
    higher_is_better: bool = False

    def rank(self, value: float) -> float:
        """A number that is smaller for a better mean; NaN comes last."""
        if np.isnan(value):
            return float("inf")
        return -value if self.higher_is_better else value


def bounded_slowdown(schedule: Schedule, bound_steps: int = BOUND_STEPS) -> NDArray[np.float64]:
    """Completion time over duration, where short jobs count as `bound_steps` long, at least 1.

    After Feitelson and Rudolph, Metrics and benchmarking for parallel job scheduling (1998);
    float64 ``(num_jobs,)``.
    """
    bounded = schedule.completion / np.maximum(schedule.duration, bound_steps)
    return np.maximum(bounded, 1.0)


def within(schedule: Schedule, slowdown: float) -> NDArray[np.float64]:
    """1 for each job that finished at or below a slowdown, else 0, float64 ``(num_jobs,)``."""
    # The quotient of two integers below 2**31 is at most a small integer only if it truly is.
    return (schedule.finished & (schedule.slowdown <= slowdown)).astype(np.float64)


def makespan(schedule: Schedule) -> NDArray[np.float64]:
    """Time step of the last finish, float64 ``(num_episodes,)``.

    An episode with unfinished jobs counts with its end, which is a lower bound; one without jobs
    with 0.
    """
    until = np.where(schedule.finished, schedule.finish, schedule.end[schedule.episode])
    last = np.zeros(schedule.num_episodes, np.int64)
    np.maximum.at(last, schedule.episode, until)
    return last.astype(np.float64)


def utilization(schedule: Schedule) -> NDArray[np.float64]:
    """Share of the cluster in use inside the arrival window, mean over resources.

    Over an episode that finishes all jobs the whole use is a constant, so that only the window
    tells policies apart; float64 ``(num_episodes,)``.
    """
    until = np.minimum(schedule.window, schedule.end)[schedule.episode]
    stop = np.minimum(schedule.start + schedule.duration, until)
    steps = np.where(schedule.start >= 0, np.maximum(stop - schedule.start, 0), 0)
    share = (schedule.demand / schedule.capacity).mean(axis=1)
    used = np.bincount(schedule.episode, steps * share, minlength=schedule.num_episodes)
    return used / schedule.window


def is_small(schedule: Schedule, at_most: int = SMALL_AT_MOST) -> NDArray[np.bool_]:
    """Which jobs last at most that many time steps, bool ``(num_jobs,)``."""
    small: NDArray[np.bool_] = schedule.duration <= at_most
    return small


def _within(limit: int) -> Values:
    return lambda schedule: within(schedule, limit)


METRICS: Registry[Metric] = Registry("metric")
for _metric in (
    Metric("slowdown", "mean slowdown", "job", lambda s: s.slowdown),
    Metric(
        "slowdown_finished",
        "mean slowdown of finished jobs",
        "job",
        lambda s: s.slowdown,
        lambda s: s.finished,
    ),
    Metric("slowdown_small", "mean slowdown of small jobs", "job", lambda s: s.slowdown, is_small),
    Metric(
        "slowdown_large",
        "mean slowdown of large jobs",
        "job",
        lambda s: s.slowdown,
        lambda s: ~is_small(s),
    ),
    Metric("bounded_slowdown", "mean bounded slowdown", "job", bounded_slowdown),
    Metric(
        "completion_time",
        "mean completion time (steps)",
        "job",
        lambda s: s.completion.astype(np.float64),
    ),
    Metric("makespan", "mean makespan (steps)", "episode", makespan),
    Metric(
        "utilization",
        "mean utilization in the arrival window",
        "episode",
        utilization,
        higher_is_better=True,
    ),
    *(
        Metric(
            f"within_{limit}",
            f"share of jobs with slowdown at most {limit}",
            "job",
            _within(limit),
            higher_is_better=True,
        )
        for limit in WITHIN
    ),
):
    METRICS.register(_metric.name)(_metric)
