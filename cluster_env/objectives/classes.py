r"""The slowdown where some jobs matter more: every class of jobs (a queue, a tenant) has a weight.

An episode costs :math:`\sum_j w_{c_j} C_j / T_j` with :math:`c_j` the class of job :math:`j`, its
completion time :math:`C_j` and its duration :math:`T_j`. The weights are a part of the name, as in
``class_slowdown(0.1, 1, 10)``, so that whatever takes the name of an objective takes this one too.
A policy sees the classes in the state, but never the weights.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.metric import Metric
from cluster_env.core.objective import Objective
from cluster_env.core.schedule import Schedule
from cluster_env.objectives.registry import OBJECTIVE_FAMILIES

_NAME = "class_slowdown"


def class_slowdown(weights: Sequence[float]) -> Objective:
    """The slowdown weighted by class, by finite weights of the classes 0, 1, ...

    Raises:
        InputError: for other weights; and from `Objective.job_cost`, if a job's class has none.
    """
    name = class_slowdown_name(weights)
    _check(weights, name)

    def job_cost(jobset: JobSet) -> NDArray[np.float64]:
        cost: NDArray[np.float64] = weight_of(jobset.job_class, weights) / jobset.duration
        return cost

    def values(schedule: Schedule) -> NDArray[np.float64]:
        # Not what the costs add up to, C x (w / T), whose last bit may be another one.
        return weight_of(schedule.job_class, weights) * schedule.slowdown

    readable = ", ".join(f"{weight:.3g}" for weight in weights)
    label = f"mean slowdown, classes weighted {readable}"
    return Objective(name, job_cost, measure=Metric(name, label, "job", values))


@OBJECTIVE_FAMILIES.register(_NAME)
def _from_name(name: str) -> Objective:
    return class_slowdown(read_class_weights(name) or ())


def class_slowdown_name(weights: Sequence[float]) -> str:
    """The name of the objective with these weights, which `read_class_weights` reads exactly."""
    return f"{_NAME}({', '.join(repr(float(weight)).removesuffix('.0') for weight in weights)})"


def read_class_weights(name: str) -> tuple[float, ...] | None:
    """The weights of classes 0, 1, ... in a name such as ``class_slowdown(0.1, 1, 10)``, or None.

    Raises:
        InputError: if the weights are missing or cannot be used.
    """
    kind, opening, rest = name.strip().partition("(")
    if kind.strip() != _NAME:
        return None
    weights: tuple[float, ...] = ()
    if opening and rest.endswith(")"):
        with suppress(ValueError):
            weights = tuple(float(number) for number in rest[:-1].split(","))
    _check(weights, name)
    return weights


def weight_of(job_class: NDArray[np.uint8], weights: Sequence[float]) -> NDArray[np.float64]:
    """The weight of each job, float64 ``(num_jobs,)``, from its class, uint8 ``(num_jobs,)``.

    Raises:
        InputError: if there is a class without a weight.
    """
    largest = int(job_class.max(initial=0))
    if largest >= len(weights):
        raise InputError(
            f"there are jobs of class {largest}, but {class_slowdown_name(weights)} has weights "
            f"for the classes 0..{len(weights) - 1} only"
        )
    return np.asarray(weights, np.float64)[job_class]


def _check(weights: Sequence[float], given: str) -> None:
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise InputError(
            f"{_NAME} needs a finite weight of at least 0 for each class, one of them above 0, as "
            f"in {_NAME}(0.1, 1, 10), but '{given}' was given"
        )
