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

=====================================  ==========================================================
objective                              return
=====================================  ==========================================================
``slowdown``                           :math:`-\sum` of ``slowdown`` over jobs
``completion_time``                    :math:`-\sum` of ``completion_time`` over jobs
``makespan``                           :math:`-` ``makespan``
``utilization``                        window :math:`\times` ``utilization``
the same                               window :math:`\times (1 -` ``idle`` :math:`)`
``bounded_slowdown``                   number of jobs :math:`-\sum` of ``bounded_slowdown``
``weighted_completion_time``           :math:`-\sum` of ``weighted_completion_time`` over jobs
``duration_weighted_completion_time``  :math:`-\sum` of that metric over jobs
``fair_slowdown``                      :math:`-\sum` of ``fair_slowdown`` over jobs
``class_slowdown(...)``                :math:`-\sum` of the metric of the same name over jobs
any other, and mixtures                :math:`-` its `cost_metric`
=====================================  ==========================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import Objective, read_class_weights, read_mixture
from cluster_env.objectives.classes import class_slowdown_name, weight_of
from cluster_env.objectives.objective import (
    BOUND_STEPS,
    FAIR_BOUND,
    FAIR_WEIGHT,
    SMALL_AT_MOST,
    job_area,
)

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


def weighted_completion_time(schedule: Schedule) -> NDArray[np.float64]:
    """Completion time times area, in units times squared steps, float64 ``(num_jobs,)``."""
    return schedule.completion * job_area(schedule.duration, schedule.demand)


def duration_weighted_completion_time(schedule: Schedule) -> NDArray[np.float64]:
    """Completion time times duration, in squared steps, float64 ``(num_jobs,)``."""
    return schedule.completion.astype(np.float64) * schedule.duration


def fair_slowdown(schedule: Schedule) -> NDArray[np.float64]:
    """Slowdown, which a large job pays for again, `FAIR_WEIGHT` times, above `FAIR_BOUND`.

    float64 ``(num_jobs,)``.
    """
    unfair = np.where(is_small(schedule), 0.0, np.maximum(schedule.slowdown - FAIR_BOUND, 0.0))
    return schedule.slowdown + FAIR_WEIGHT * unfair


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
    Metric(
        "weighted_completion_time",
        "mean area-weighted completion time (units x steps²)",
        "job",
        weighted_completion_time,
    ),
    Metric(
        "duration_weighted_completion_time",
        "mean duration-weighted completion time (steps²)",
        "job",
        duration_weighted_completion_time,
    ),
    Metric("fair_slowdown", "mean fair slowdown", "job", fair_slowdown),
    Metric("makespan", "mean makespan (steps)", "episode", makespan),
    Metric(
        "utilization",
        "mean utilization in the arrival window",
        "episode",
        utilization,
        higher_is_better=True,
    ),
    Metric(
        "idle",
        "mean idle share in the arrival window",
        "episode",
        lambda s: 1.0 - utilization(s),
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


def cost_metric(objective: Objective) -> Metric:
    """The metric of an objective that no other metric stands for, such as a mixture.

    Its value is what an episode costs, exactly minus its return if it finishes all jobs under the
    paper's rules, without discounting: the sum over jobs of what each has cost, and the makespan,
    less the use of the cluster inside the arrival window, each as the objective weighs it. Lower
    is better, and a gain makes it negative.
    """

    def values(schedule: Schedule) -> NDArray[np.float64]:
        costs = objective.busy_cost * makespan(schedule)
        costs -= objective.utilization_gain * schedule.window * utilization(schedule)
        return costs + _job_costs(schedule, objective)

    return Metric(objective.name, f"mean cost of an episode: {objective.name}", "episode", values)


def class_metric(weights: Sequence[float]) -> Metric:
    """The slowdown times the weight of the job's class; `cluster_env.objectives.classes`."""
    readable = ", ".join(f"{weight:.3g}" for weight in weights)
    return Metric(
        class_slowdown_name(weights),
        f"mean slowdown, classes weighted {readable}",
        "job",
        lambda schedule: weight_of(schedule.job_class, weights) * schedule.slowdown,
    )


def get_metric(name: str) -> Metric:
    """Returns the metric of that name.

    The names of a mixture of objectives and of a slowdown weighted by class are metrics, too.

    Raises:
        InputError: if there is none.
    """
    mixed, weights = read_mixture(name), read_class_weights(name)
    if mixed is not None:
        return cost_metric(mixed)
    return METRICS.get(name) if weights is None else class_metric(weights)


def objective_metric(objective: Objective) -> Metric:
    """Returns the metric by which schedules are ranked under an objective."""
    if objective.name in METRICS.names():
        return METRICS.get(objective.name)
    weights = read_class_weights(objective.name)
    return cost_metric(objective) if weights is None else class_metric(weights)


def _job_costs(schedule: Schedule, objective: Objective) -> NDArray[np.float64]:
    """What the jobs of each episode cost, float64 ``(num_episodes,)``."""
    order = np.lexsort((schedule.job, schedule.episode))
    ends = np.cumsum(np.bincount(schedule.episode, minlength=schedule.num_episodes))
    completion = schedule.completion
    costs = np.zeros(schedule.num_episodes)
    for episode, of in enumerate(np.split(order, ends[:-1])):
        jobset = JobSet(
            schedule.arrival[of],
            schedule.duration[of],
            schedule.demand[of],
            int(schedule.window[episode]),
            schedule.job_class[of],
        )
        costs[episode] = completion[of] @ objective.job_cost(jobset)
        for late in objective.late_costs:
            steps_late = np.maximum(completion[of] - late.after(jobset), 0)
            costs[episode] += steps_late @ late.cost(jobset)
    return costs
