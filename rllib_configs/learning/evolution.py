"""Evolution strategies: a search by the order of candidates' costs, and costs with limits."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Purpose, generator

Vector = NDArray[np.float32]  # (num_parameters,)

LEAST_COST = 1e-6
"""Smaller costs count as this, so that there is a logarithm."""


class Search:
    """CMA-ES (Hansen and Ostermeier, Evolutionary Computation 9, 2001), as the package cma has it.

    Candidates of an iteration depend on the seed, the iteration and the costs of those before; no
    global random state is used or changed.

    Args:
        start: mean of the first candidates, float ``(num_parameters,)``.
        step_size: standard deviation of their parameters.
        population: candidates of an iteration.
        seed: of the run.
    """

    def __init__(
        self, start: NDArray[np.floating[Any]], step_size: float, population: int, seed: int
    ) -> None:
        import cma  # takes a second, which runners do without

        self._normals = _Normals(seed)
        options = {
            "popsize": population,
            "randn": self._normals,
            "seed": np.nan,  # numpy's own state is left alone
            "verbose": -9,
            "verb_log": 0,
        }
        self._strategy: Any = cma.CMAEvolutionStrategy(
            np.asarray(start, np.float64).tolist(), step_size, options
        )

    def ask(self, iteration: int) -> NDArray[np.float32]:
        """The candidates of an iteration, float32 ``(population, num_parameters)``."""
        self._normals.begin(iteration)
        self._asked = self._strategy.ask()
        return np.array(self._asked, np.float32)

    def tell(self, costs: NDArray[np.float64]) -> None:
        """Learns from the costs of the candidates that were asked for, ``(population,)``."""
        self._strategy.tell(self._asked, costs.tolist())

    @property
    def mean(self) -> Vector:
        """Mean of the next candidates, float32 ``(num_parameters,)``."""
        return np.array(self._strategy.mean, np.float32)

    @property
    def step_size(self) -> float:
        """Mean standard deviation of the next candidates' parameters."""
        deviations = self._strategy.sigma * np.sqrt(self._strategy.dC) * self._strategy.sigma_vec
        return float(np.mean(deviations))

    def get_state(self) -> bytes:
        """All that the next candidates depend on."""
        dumped: bytes = self._strategy.pickle_dumps()
        return dumped

    def set_state(self, state: bytes) -> None:
        """Takes over what `get_state` gave."""
        self._strategy = pickle.loads(state)
        self._normals = self._strategy.opts["randn"]


class _Normals:
    """Normal numbers of an iteration, as cma asks for them."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.begin(0)

    def begin(self, iteration: int) -> None:
        """Goes to the numbers of an iteration."""
        self._generator = generator(self._seed, Purpose.EVOLUTION, iteration)

    def __call__(self, *shape: int) -> NDArray[np.float64]:
        return self._generator.standard_normal(shape)


@dataclass(frozen=True)
class Limit:
    """What a metric may be, beside that of a reference on the same jobs.

    Attributes:
        worse: share by which it may be worse.
        multiplier: cost of a violation, see `violation`.
        higher_is_better: of the metric.
    """

    worse: float
    multiplier: float
    higher_is_better: bool

    def violation(self, value: float, reference: float) -> float:
        """By how much a value is beyond the limit, 0 if it keeps it.

        It is the logarithm of the ratio of both; of what should be small, after 1 was added to
        each, so that no second of waiting counts for much where the reference has none.
        """
        if self.higher_is_better:
            bound = (1 - self.worse) * reference
            ratio = max(bound, LEAST_COST) / max(value, LEAST_COST)
        else:
            ratio = (1 + value) / (1 + (1 + self.worse) * reference)
        return float(np.log(max(ratio, 1.0)))


def penalized(
    cost: float,
    values: Mapping[str, float],
    references: Mapping[str, float],
    limits: Mapping[str, Limit],
) -> tuple[float, dict[str, float]]:
    """What a candidate is judged by on one sequence: ln(cost), and penalties for each limit.

    So sequences count by the ratio of costs, and not those most that cost most under any policy.

    Args:
        cost: of the objective, 0 or above.
        values: of the metrics that have limits.
        references: the same of the reference, on the same jobs.
        limits: by name of the metric.

    Returns:
        The judgement, and the violation of each limit.
    """
    violations = {
        name: limit.violation(values[name], references[name]) for name, limit in limits.items()
    }
    total = float(np.log(max(cost, LEAST_COST)))
    for name, limit in limits.items():
        total += limit.multiplier * violations[name]
    return total, violations
