r"""Rewards of PANDA (sections 3.2.3 and 4.1), with a parameter in their names.

A consumer with the run time :math:`T` at speed 1 that asks for :math:`k` cores is expected to be in
the system for :math:`E = T + kT / a`: it may wait a step for each :math:`a` core steps that it asks
for, so that longer waits are permissible where the demand is larger. With its total time :math:`C`:

* ``normalized_time(a)`` costs :math:`C / E`, the wait and the run relative to what is expected.
* ``class_spread(a)`` costs :math:`\sum_{m \in 1, 2, 4} \max(0, C - m E_c) / E_c` with :math:`E_c`
  the mean of :math:`E` over its class in the jobset. It grows the faster the longer :math:`C` is,
  so that of equal sums of total times the most even one in a class costs least: the fairness within
  a class, of which each agent has a part, where the variance itself belongs to none of them.

* ``feedback(a)`` costs what consumers say when they leave (3.2.3): one that is content with
  :math:`p` percent of :math:`E`, its attribute ``tolerance``, gives the feedback
  :math:`-\max(0, C - p E / 100) / E`; one without, or with 0, says nothing.

The paper's third reward, of the system, is what agents learn from by ``training.joint``.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives import OBJECTIVE_FAMILIES, LateCost, Objective
from cluster_env.worlds.panda.consumers import TOLERANCE

_SILENT = 2**31 - 1  # steps after which a consumer complains that says nothing
FACTORS = (1, 2, 4)
"""Of the time that a class expects, from which a consumer of it costs more."""


def expected_time(jobset: JobSet, core_steps: float) -> NDArray[np.float64]:
    """The E of each consumer in steps, float64 ``(num_jobs,)``, with ``core_steps`` as its a."""
    duration = jobset.duration.astype(np.float64)
    return duration + duration * jobset.demand[:, 0] / core_steps


def expected_in_class(jobset: JobSet, core_steps: float) -> NDArray[np.float64]:
    """The mean of `expected_time` over each consumer's class, float64 ``(num_jobs,)``."""
    sums = np.bincount(jobset.job_class, expected_time(jobset, core_steps), 256)
    counts = np.bincount(jobset.job_class, minlength=256)
    return (sums / np.maximum(counts, 1))[jobset.job_class]


def normalized_time(name: str, core_steps: float) -> Objective:
    """``normalized_time(a)``, with the number a in its name."""
    label = f"mean total time over the expected one ({core_steps:g} core steps a step of waiting)"
    return Objective(name, lambda jobset: 1.0 / expected_time(jobset, core_steps), label=label)


def class_spread(name: str, core_steps: float) -> Objective:
    """``class_spread(a)``."""

    def late(factor: int) -> LateCost:
        return LateCost(
            lambda jobset: 1.0 / expected_in_class(jobset, core_steps),
            lambda jobset: np.rint(factor * expected_in_class(jobset, core_steps)).astype(np.int32),
        )

    label = f"mean cost of uneven total times in a class ({core_steps:g} core steps a step)"
    costs = tuple(late(factor) for factor in FACTORS)
    return Objective(name, _nothing, late_costs=costs, label=label)


def feedback(name: str, core_steps: float) -> Objective:
    """``feedback(a)``."""

    def after(jobset: JobSet) -> NDArray[np.int32]:
        tolerance = jobset.attributes.get(TOLERANCE, np.zeros(jobset.num_jobs))
        content = np.rint(tolerance / 100.0 * expected_time(jobset, core_steps))
        return np.where(tolerance > 0, content, _SILENT).astype(np.int32)

    late = LateCost(lambda jobset: 1.0 / expected_time(jobset, core_steps), after)
    label = f"mean feedback of consumers, as a cost ({core_steps:g} core steps a step of waiting)"
    return Objective(name, _nothing, late_costs=(late,), label=label)


def _nothing(jobset: JobSet) -> NDArray[np.float64]:
    return np.zeros(jobset.num_jobs)


def _register(family: str, make: Callable[[str, float], Objective]) -> None:
    """Enters a family of objectives, which have their core steps in brackets."""

    def named(name: str) -> Objective:
        try:
            value = float(name.partition("(")[2].removesuffix(")"))
        except ValueError:
            value = math.nan
        if not (0 < value < math.inf and name.endswith(")")):
            raise InputError(
                f"'{name}' needs the core steps for which a step of waiting is expected, a number "
                f"above 0, as in {family}(16)"
            )
        return make(name, value)

    OBJECTIVE_FAMILIES.register(family)(named)


_register("normalized_time", normalized_time)
_register("class_spread", class_spread)
_register("feedback", feedback)
