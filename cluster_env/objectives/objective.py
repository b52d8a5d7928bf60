r"""What a scheduler is rewarded for (DeepRM, sections 3.2 and 3.4).

Every objective is a sum over time steps of three terms: what each job in the system costs, what a
step costs while jobs of the jobset are unfinished, and what the use of the cluster inside the
arrival window gains. The return of an episode that finishes all jobs, without discounting, is
then exactly, with :math:`C_j` the completion time and :math:`T_j` the duration of job :math:`j`:

* ``slowdown``: :math:`-\sum_j C_j / T_j`;
* ``completion_time``: :math:`-\sum_j C_j`;
* ``makespan``: minus the time step of the last finish;
* ``utilization``: the window's length times the mean utilization of the resources in it. Over the
  whole episode the sum would be a constant, because all work gets done sooner or later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry

JobCost = Callable[[JobSet], NDArray[np.float64]]


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
    """

    name: str
    job_cost: JobCost
    busy_cost: float = 0.0
    utilization_gain: float = 0.0


def _no_cost(jobset: JobSet) -> NDArray[np.float64]:
    return np.zeros(jobset.num_jobs)


def _slowdown_cost(jobset: JobSet) -> NDArray[np.float64]:
    cost: NDArray[np.float64] = 1.0 / jobset.duration
    return cost


def _completion_cost(jobset: JobSet) -> NDArray[np.float64]:
    return np.ones(jobset.num_jobs)


OBJECTIVES: Registry[Objective] = Registry("objective")
for _objective in (
    Objective("slowdown", _slowdown_cost),
    Objective("completion_time", _completion_cost),
    Objective("makespan", _no_cost, busy_cost=1.0),
    Objective("utilization", _no_cost, utilization_gain=1.0),
):
    OBJECTIVES.register(_objective.name)(_objective)


def get_objective(name: str) -> Objective:
    """Returns the objective of that name.

    Raises:
        InputError: if there is none.
    """
    return OBJECTIVES.get(name)


def mixture(weights: Mapping[str, float]) -> Objective:
    """Returns a weighted sum of objectives.

    Args:
        weights: weight of each objective by name, at least one and each at least 0.

    Raises:
        InputError: for an unknown name, no weight above 0, or a negative one.
    """
    if not weights or min(weights.values()) < 0 or max(weights.values()) <= 0:
        raise InputError(
            f"a mixture needs weights of at least 0, one of them above, not {dict(weights)}"
        )
    parts = [(weight, get_objective(name)) for name, weight in weights.items()]

    def job_cost(jobset: JobSet) -> NDArray[np.float64]:
        cost = np.zeros(jobset.num_jobs)
        for weight, part in parts:
            cost += weight * part.job_cost(jobset)
        return cost

    return Objective(
        name=" + ".join(f"{weight:g} {part.name}" for weight, part in parts),
        job_cost=job_cost,
        busy_cost=sum(weight * part.busy_cost for weight, part in parts),
        utilization_gain=sum(weight * part.utilization_gain for weight, part in parts),
    )
