"""Objectives by name, and weighted sums of them."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.objective import JobCost, LateCost, Objective, episode_cost
from cluster_env.objectives.registry import OBJECTIVES, find_objective

_PLUS = " + "


def get_objective(name: str) -> Objective:
    """The objective of that name, of a family's as of ``class_slowdown(0.1, 1, 10)``, or a mixture.

    Raises:
        InputError: if there is none, or its weights cannot be used.
    """
    return read_mixture(name) or find_objective(name) or OBJECTIVES.get(name)


def mixture(weights: Mapping[str, float]) -> Objective:
    """A weighted sum of objectives, from their weights by name.

    Raises:
        InputError: for an unknown name, no weight above 0, or a negative one.
    """
    numbers = list(weights.values())
    if not all(math.isfinite(w) and w >= 0 for w in numbers) or not any(numbers):
        raise InputError(
            f"a mixture needs weights of at least 0, one of them above, not {dict(weights)}"
        )
    parts = [
        (weight, find_objective(name) or OBJECTIVES.get(name)) for name, weight in weights.items()
    ]
    gains = [
        _weighted(weight, part.finish_gain)
        for weight, part in parts
        if part.finish_gain is not None
    ]

    def job_cost(jobset: JobSet) -> NDArray[np.float64]:
        cost = np.zeros(jobset.num_jobs)
        for weight, part in parts:
            cost += weight * part.job_cost(jobset)
        return cost

    def finish_gain(jobset: JobSet) -> NDArray[np.float64]:
        gained = np.zeros(jobset.num_jobs)
        for gain in gains:
            gained += gain(jobset)
        return gained

    mixed = Objective(
        name=_PLUS.join(f"{_written(weight)} {part.name}" for weight, part in parts),
        job_cost=job_cost,
        busy_cost=sum(weight * part.busy_cost for weight, part in parts),
        utilization_gain=sum(weight * part.utilization_gain for weight, part in parts),
        late_costs=tuple(
            LateCost(_weighted(weight, late.cost), late.after)
            for weight, part in parts
            for late in part.late_costs
        ),
        finish_gain=finish_gain if gains else None,
        utility_gain=sum(weight * part.utility_gain for weight, part in parts),
    )
    # Parts of jobs and of episodes have only what an episode costs in common.
    return replace(mixed, measure=episode_cost(mixed))


def read_mixture(name: str) -> Objective | None:
    """The mixture of a name such as ``0.5 slowdown + 2 makespan``, or None if it looks like none.

    A part may be of a family: ``0.5 class_slowdown(0.1, 1, 10) + 2 makespan``.

    Raises:
        InputError: if it names an unknown objective or weights that cannot be used.
    """
    weights = _weights_in(name)
    return None if weights is None else mixture(weights)


def weights_of(name: str) -> dict[str, float]:
    """The weights of the parts of an objective by name; 1 of one that is no mixture."""
    weights = _weights_in(name)
    return {name: 1.0} if weights is None else weights


def _weights_in(name: str) -> dict[str, float] | None:
    weights: dict[str, float] = {}
    for part in name.split(_PLUS):
        number, space, objective = part.partition(" ")
        if not space:
            return None
        try:
            weights[objective] = weights.get(objective, 0.0) + float(number)
        except ValueError:
            return None
    return weights


def _written(weight: float) -> str:
    """A weight that reads back exactly: ``2`` and ``0.5``, and all digits of a third."""
    short = f"{weight:.12g}"
    return short if float(short) == weight else repr(float(weight))


def _weighted(weight: float, cost: JobCost) -> JobCost:
    return lambda jobset: weight * cost(jobset)
