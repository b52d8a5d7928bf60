r"""The objectives of DeepRM (sections 3.2 and 3.4) and of the field, and what ties them to metrics.

The identities, for one episode that finishes all jobs under the paper's rules, without discounting;
:math:`C_j` is the completion time and :math:`T_j` the duration of job :math:`j`, and sums of a
metric run over the jobs:

=====================================  ==========================================================
objective                              return
=====================================  ==========================================================
``slowdown``                           :math:`-\sum` ``slowdown`` :math:`= -\sum_j C_j / T_j`
``completion_time``                    :math:`-\sum` ``completion_time`` :math:`= -\sum_j C_j`
``makespan``                           :math:`-` ``makespan``, the time step of the last finish
``utilization``                        window :math:`\times` ``utilization``
the same                               window :math:`\times (1 -` ``idle`` :math:`)`
``bounded_slowdown``                   number of jobs :math:`-\sum` ``bounded_slowdown``
``weighted_completion_time``           :math:`-\sum` ``weighted_completion_time``
``duration_weighted_completion_time``  :math:`-\sum` of that metric, :math:`= -\sum_j T_j C_j`
``fair_slowdown``                      :math:`-\sum` ``fair_slowdown``
``relative_completion_time``           :math:`-\sum` ``relative_completion_time``
``relative_weighted_completion_time``  :math:`-\sum` of that metric
``class_slowdown(...)``                :math:`-\sum` of the metric of the same name
any other without a gain or busy cost  :math:`-\sum` of the metric of the same name
any other, and mixtures                :math:`-` its `episode_cost`
=====================================  ==========================================================

* ``utilization`` is that of the arrival window. Over the whole episode the sum would be a constant,
  because all work gets done sooner or later;
* ``bounded_slowdown``: :math:`b_j = \max(1, C_j / \max(T_j, \tau))` of Feitelson and Rudolph, with
  :math:`\tau` = `BOUND_STEPS`. A job costs nothing until it has been in the system for
  :math:`\max(T_j, \tau)` steps, so that short jobs may wait a little for free;
* ``weighted_completion_time``: :math:`w_j C_j` with the area
  :math:`w_j = T_j \cdot` mean over resources of the demand, in units times steps. After the
  average weighted response time of Krallmann, Schwiegelshohn and Yahyapour (1999): on a machine
  that is always full every order of the jobs is worth the same, so that long and wide jobs are not
  sacrificed to short and narrow ones, and good packing is all that pays;
* ``duration_weighted_completion_time``: a step of a job costs the more the longer it lasts, where
  with ``slowdown`` it costs the less. On a machine that runs one job at a time every order would be
  worth the same (Smith's rule, 1956); here long jobs are to start while there is room for them, and
  of equally long ones those with small demands;
* ``relative_completion_time``: :math:`C_j / \bar T`, with :math:`\bar T` the mean duration of the
  jobset's jobs; ``relative_weighted_completion_time``: :math:`w_j C_j` over the mean of
  :math:`w_j T_j`. Both are 1 on average where nobody waits, on any machine, so that they can be
  weighed against each other and against slowdowns;
* ``fair_slowdown``: :math:`f_j = C_j / T_j` for small jobs, those that last at most `SMALL_AT_MOST`
  steps, and :math:`f_j = C_j / T_j + a \max(0, C_j / T_j - b)` for large ones, with :math:`a` =
  `FAIR_WEIGHT` and :math:`b` = `FAIR_BOUND`: the slowdown, under the soft constraint that no large
  job is slowed down by more than :math:`b`.

`cluster_env.objectives.classes` has one more, whose weights are a part of its name.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.metric import Metric, utilization
from cluster_env.core.objective import LateCost, Objective
from cluster_env.core.schedule import Schedule
from cluster_env.objectives.registry import OBJECTIVES

SMALL_AT_MOST = 5
"""Longest duration of a small job, in time steps: DeepRM's short jobs last 1-3, its long 10-15."""

BOUND_STEPS = 10
"""Durations below this count as this in the bounded slowdown, in time steps."""

FAIR_BOUND = 3
"""Slowdown from which a large job costs more in the fair slowdown; a whole number."""

FAIR_WEIGHT = 4.0
"""How much more it costs from there, for each unit of slowdown."""


def slowdown(schedule: Schedule) -> NDArray[np.float64]:
    """Completion time over duration, float64 ``(num_jobs,)``."""
    return schedule.slowdown


def bounded_slowdown(schedule: Schedule, bound_steps: int = BOUND_STEPS) -> NDArray[np.float64]:
    """Completion time over duration, where short jobs count as `bound_steps` long, at least 1.

    After Feitelson and Rudolph, Metrics and benchmarking for parallel job scheduling (1998);
    float64 ``(num_jobs,)``.
    """
    bounded = schedule.completion / np.maximum(schedule.duration, bound_steps)
    return np.maximum(bounded, 1.0)


def fair_slowdown(schedule: Schedule) -> NDArray[np.float64]:
    """Slowdown, which a large job pays for again, `FAIR_WEIGHT` times, above `FAIR_BOUND`.

    float64 ``(num_jobs,)``.
    """
    unfair = np.where(is_small(schedule), 0.0, np.maximum(schedule.slowdown - FAIR_BOUND, 0.0))
    return schedule.slowdown + FAIR_WEIGHT * unfair


def is_small(schedule: Schedule) -> NDArray[np.bool_]:
    """Which jobs last at most `SMALL_AT_MOST` time steps, bool ``(num_jobs,)``."""
    return np.asarray(schedule.duration <= SMALL_AT_MOST)


def no_cost(jobset: JobSet) -> NDArray[np.float64]:
    """Nothing, for objectives whose costs are others."""
    return np.zeros(jobset.num_jobs)


def slowdown_cost(jobset: JobSet) -> NDArray[np.float64]:
    """Of a step, such that a job costs its slowdown."""
    cost: NDArray[np.float64] = 1.0 / jobset.duration
    return cost


def completion_cost(jobset: JobSet) -> NDArray[np.float64]:
    """Of a step, such that a job costs its completion time."""
    return np.ones(jobset.num_jobs)


def area_cost(jobset: JobSet) -> NDArray[np.float64]:
    """Units times steps, in the mean over resources."""
    area: NDArray[np.float64] = jobset.duration * jobset.demand.mean(axis=1)
    return area


def relative_cost(jobset: JobSet) -> NDArray[np.float64]:
    """One over the mean duration of the jobset's jobs."""
    mean = float(jobset.duration.astype(np.float64).mean()) if jobset.num_jobs else 0.0
    return np.full(jobset.num_jobs, 1.0 / max(mean, 1.0))


def relative_area_cost(jobset: JobSet) -> NDArray[np.float64]:
    """The area over what jobs that do not wait would cost by it in the mean."""
    area = area_cost(jobset)
    mean = float((area * jobset.duration).mean()) if jobset.num_jobs else 0.0
    return area / max(mean, 1.0)


def duration_cost(jobset: JobSet) -> NDArray[np.float64]:
    """The duration: a step of a long job costs more."""
    return jobset.duration.astype(np.float64)


def bounded_duration(jobset: JobSet) -> NDArray[np.int32]:
    """Steps that a job may be in the system for free, in the bounded slowdown."""
    return np.maximum(jobset.duration, BOUND_STEPS).astype(np.int32)


def bounded_cost(jobset: JobSet) -> NDArray[np.float64]:
    """Of a step after them."""
    cost: NDArray[np.float64] = 1.0 / bounded_duration(jobset)
    return cost


def fair_steps(jobset: JobSet) -> NDArray[np.int32]:
    """Steps until the slowdown of a job is `FAIR_BOUND`."""
    return (FAIR_BOUND * jobset.duration).astype(np.int32)


def unfair_cost(jobset: JobSet) -> NDArray[np.float64]:
    """Of a step after them, of a large job."""
    return np.where(jobset.duration > SMALL_AT_MOST, FAIR_WEIGHT / jobset.duration, 0.0)


# Quotients are measured as the field writes them. What the cost rates add up to, C x (1 / T), may
# differ from C / T in the last bit, and results that were published must stay as they are; the
# bounded slowdown is beside the cost by 1 for each job, and the utilization by sign and scale.
for _objective in (
    Objective(
        "slowdown", slowdown_cost, measure=Metric("slowdown", "mean slowdown", "job", slowdown)
    ),
    Objective("completion_time", completion_cost, label="mean completion time (steps)"),
    Objective("makespan", no_cost, busy_cost=1.0, label="mean makespan (steps)"),
    Objective(
        "utilization",
        no_cost,
        utilization_gain=1.0,
        measure=Metric(
            "utilization",
            "mean utilization in the arrival window",
            "episode",
            utilization,
            higher_is_better=True,
        ),
    ),
    Objective(
        "bounded_slowdown",
        no_cost,
        late_costs=(LateCost(bounded_cost, bounded_duration),),
        measure=Metric("bounded_slowdown", "mean bounded slowdown", "job", bounded_slowdown),
    ),
    Objective(
        "weighted_completion_time",
        area_cost,
        label="mean area-weighted completion time (units x steps²)",
    ),
    Objective(
        "duration_weighted_completion_time",
        duration_cost,
        label="mean duration-weighted completion time (steps²)",
    ),
    Objective(
        "relative_completion_time",
        relative_cost,
        label="mean completion time over the mean duration",
    ),
    Objective(
        "relative_weighted_completion_time",
        relative_area_cost,
        label="mean area-weighted completion time over that of jobs that do not wait",
    ),
    Objective(
        "fair_slowdown",
        slowdown_cost,
        late_costs=(LateCost(unfair_cost, fair_steps),),
        measure=Metric("fair_slowdown", "mean fair slowdown", "job", fair_slowdown),
    ),
):
    OBJECTIVES.register(_objective.name)(_objective)
