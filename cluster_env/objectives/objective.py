r"""What a scheduler is rewarded for (DeepRM, sections 3.2 and 3.4).

Every objective is a sum over time steps of four terms: what each job in the system costs, what it
costs beside once it has been there for long, what a step costs while jobs of the jobset are
unfinished, and what the use of the cluster inside the arrival window gains. The return of an
episode that finishes all jobs under the paper's rules, without discounting, is then exactly, with
:math:`C_j` the completion time and :math:`T_j` the duration of job :math:`j`:

* ``slowdown``: :math:`-\sum_j C_j / T_j`;
* ``completion_time``: :math:`-\sum_j C_j`;
* ``makespan``: minus the time step of the last finish;
* ``utilization``: the window's length times the mean utilization of the resources in it. Over the
  whole episode the sum would be a constant, because all work gets done sooner or later;
* ``bounded_slowdown``: :math:`-\sum_j (b_j - 1)` with the bounded slowdown
  :math:`b_j = \max(1, C_j / \max(T_j, \tau))` of Feitelson and Rudolph, and :math:`\tau` =
  `BOUND_STEPS`. A job costs nothing until it has been in the system for :math:`\max(T_j, \tau)`
  steps, so that short jobs may wait a little for free;
* ``weighted_completion_time``: :math:`-\sum_j w_j C_j` with the area
  :math:`w_j = T_j \cdot` mean over resources of the demand, in units times steps. After the
  average weighted response time of Krallmann, Schwiegelshohn and Yahyapour (1999): on a machine
  that is always full every order of the jobs is worth the same, so that long and wide jobs are not
  sacrificed to short and narrow ones, and good packing is all that pays;
* ``duration_weighted_completion_time``: :math:`-\sum_j T_j C_j`. A step of a job costs the more the
  longer it lasts, where with ``slowdown`` it costs the less. On a machine that runs one job at a
  time every order would be worth the same (Smith's rule, 1956); here long jobs are to start while
  there is room for them, and of equally long ones those with small demands;
* ``fair_slowdown``: :math:`-\sum_j f_j` with :math:`f_j = C_j / T_j` for small jobs, those that
  last at most `SMALL_AT_MOST` steps, and :math:`f_j = C_j / T_j + a \max(0, C_j / T_j - b)` for
  large ones, with :math:`a` = `FAIR_WEIGHT` and :math:`b` = `FAIR_BOUND`: the slowdown, under the
  soft constraint that no large job is slowed down by more than :math:`b`.

`cluster_env.objectives.classes` has one more, whose weights are a part of its name.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry

SMALL_AT_MOST = 5
"""Longest duration of a small job, in time steps: DeepRM's short jobs last 1-3, its long 10-15."""

BOUND_STEPS = 10
"""Durations below this count as this in the bounded slowdown, in time steps."""

FAIR_BOUND = 3
"""Slowdown from which a large job costs more in the fair slowdown; a whole number."""

FAIR_WEIGHT = 4.0
"""How much more it costs from there, for each unit of slowdown."""

JobCost = Callable[[JobSet], NDArray[np.float64]]
JobSteps = Callable[[JobSet], NDArray[np.int32]]


@dataclass(frozen=True)
class LateCost:
    """What a job costs beside `Objective.job_cost` once it has been in the system for long.

    Over an episode, a job with the completion time C costs ``max(0, C - after) * cost`` by it.

    Attributes:
        cost: cost of one time step, float64 ``(num_jobs,)``.
        after: time steps from the arrival that are still free of it, int32 ``(num_jobs,)``, at
            least 0.
    """

    cost: JobCost
    after: JobSteps


@dataclass(frozen=True)
class Objective:
    """A reward.

    Attributes:
        name: what tables call it.
        job_cost: cost of one time step in the system for each job of a jobset, float64
            ``(num_jobs,)``.
        busy_cost: cost of a time step for which unfinished jobs of the jobset exist, those that
            are still to arrive included.
        utilization_gain: gain of a time step inside the arrival window in which all resources are
            in full use.
        late_costs: what jobs cost beside once they have been in the system for long.
    """

    name: str
    job_cost: JobCost
    busy_cost: float = 0.0
    utilization_gain: float = 0.0
    late_costs: tuple[LateCost, ...] = ()


def job_area(duration: NDArray[np.int32], demand: NDArray[np.int32]) -> NDArray[np.float64]:
    """Duration times the mean demand over resources, in units times steps.

    Args:
        duration: int32 ``(num_jobs,)``.
        demand: int32 ``(num_jobs, num_resources)``.

    Returns:
        float64 ``(num_jobs,)``.
    """
    area: NDArray[np.float64] = duration * demand.mean(axis=1)
    return area


def _no_cost(jobset: JobSet) -> NDArray[np.float64]:
    return np.zeros(jobset.num_jobs)


def _slowdown_cost(jobset: JobSet) -> NDArray[np.float64]:
    cost: NDArray[np.float64] = 1.0 / jobset.duration
    return cost


def _completion_cost(jobset: JobSet) -> NDArray[np.float64]:
    return np.ones(jobset.num_jobs)


def _area_cost(jobset: JobSet) -> NDArray[np.float64]:
    return job_area(jobset.duration, jobset.demand)


def _duration_cost(jobset: JobSet) -> NDArray[np.float64]:
    return jobset.duration.astype(np.float64)


def _bounded_duration(jobset: JobSet) -> NDArray[np.int32]:
    return np.maximum(jobset.duration, BOUND_STEPS).astype(np.int32)


def _bounded_cost(jobset: JobSet) -> NDArray[np.float64]:
    cost: NDArray[np.float64] = 1.0 / _bounded_duration(jobset)
    return cost


def _unfair_cost(jobset: JobSet) -> NDArray[np.float64]:
    return np.where(jobset.duration > SMALL_AT_MOST, FAIR_WEIGHT / jobset.duration, 0.0)


def _fair_steps(jobset: JobSet) -> NDArray[np.int32]:
    return (FAIR_BOUND * jobset.duration).astype(np.int32)


OBJECTIVES: Registry[Objective] = Registry("objective")
for _objective in (
    Objective("slowdown", _slowdown_cost),
    Objective("completion_time", _completion_cost),
    Objective("makespan", _no_cost, busy_cost=1.0),
    Objective("utilization", _no_cost, utilization_gain=1.0),
    Objective(
        "bounded_slowdown", _no_cost, late_costs=(LateCost(_bounded_cost, _bounded_duration),)
    ),
    Objective("weighted_completion_time", _area_cost),
    Objective("duration_weighted_completion_time", _duration_cost),
    Objective("fair_slowdown", _slowdown_cost, late_costs=(LateCost(_unfair_cost, _fair_steps),)),
):
    OBJECTIVES.register(_objective.name)(_objective)
