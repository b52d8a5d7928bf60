"""Evolution strategies: a search by the order of candidates' costs, and costs with limits."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Purpose, generator

Vector = NDArray[np.float32]  # (num_parameters,)
Floats = NDArray[np.float64]  # (num_sequences,)
Judged = NDArray[np.float64]  # (num_candidates, num_sequences, 1 + num_limits): ln(cost), excesses

LEAST_COST = 1e-6
"""Smaller costs count as this, so that there is a logarithm."""

BREACH = 10.0
"""Multiplier that the best mean is chosen with, where those of the search adapt."""

FULL_RATE = 0.03
"""Excess from which on a multiplier rises as fast as it may."""

MULTIPLIERS = (0.02, 100.0)
"""The least and the largest that adapting leads to."""


class CandidateSearch:
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

    def get_state(self) -> Any:
        """All that the next candidates depend on, as it is now."""
        return deepcopy(self._strategy)

    def set_state(self, state: Any) -> None:
        """Takes over what `get_state` gave."""
        self._strategy = deepcopy(state)
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
        higher_is_better: of the metric.
    """

    worse: float
    higher_is_better: bool

    def excess(
        self, values: Floats, references: Floats, slack: Floats | float = 1.0
    ) -> NDArray[np.float64]:
        """By how much values are beyond the limit; below 0 if they keep it with room to spare.

        Args:
            values: of the metric on some sequences.
            references: the same of the reference.
            slack: is added to value and limit of what should be small, so that no second of
                waiting counts for much where the reference has none.

        Returns:
            The logarithms of the ratios of value and limit, or of limit and value.
        """
        if self.higher_is_better:
            bounds = np.maximum((1 - self.worse) * references, LEAST_COST)
            return np.asarray(np.log(bounds / np.maximum(values, LEAST_COST)))
        return np.asarray(np.log((slack + values) / (slack + (1 + self.worse) * references)))


class CandidateJudge:
    """What candidates are judged by: ln(cost), and what it costs to be beyond limits.

    Sequences count by the ratio of costs, and not those most that cost most under any policy,
    unless costs are pooled. A limit holds on each sequence, or on their mean: more on one is then
    made good by less on another. Its multiplier stays as it is, or rises while the mean candidate
    is beyond the limit and falls while it is not, as in dual ascent; the search then begins nearly
    without limits.

    Args:
        multipliers: of the limits, at the start, float ``(num_limits,)``.
        on_mean: whether limits hold on the mean over sequences.
        rate: by what share a multiplier rises or falls in an iteration, at most; 0 lets it stay.
        pooled: whether the cost is the mean over sequences, instead of their geometric mean.
    """

    def __init__(
        self, multipliers: Sequence[float], on_mean: bool, rate: float, pooled: bool = False
    ) -> None:
        self.multipliers = np.array(multipliers, np.float64)
        self._pooled = pooled
        self._on_mean = on_mean
        self._rate = rate

    @property
    def adapts(self) -> bool:
        """Whether multipliers rise and fall."""
        return self._rate > 0

    def beyond(self, judged: Judged) -> NDArray[np.float64]:
        """By how much candidates are beyond each limit, ``(num_candidates, num_limits)``."""
        excess = judged[:, :, 1:]
        return (excess if self._on_mean else np.maximum(excess, 0.0)).mean(axis=1)

    def costs(self, judged: Judged) -> NDArray[np.float64]:
        """What the search makes as small as can be, ``(num_candidates,)``.

        With multipliers that adapt it is the Lagrangian, so that room to spare counts, too.
        """
        beyond = self.beyond(judged)
        if not self.adapts:
            beyond = np.maximum(beyond, 0.0)
        return self._mean_costs(judged) + beyond @ self.multipliers

    def final_costs(self, judged: Judged) -> NDArray[np.float64]:
        """What the best mean is chosen by, ``(num_candidates,)``: the same at any time of a run."""
        if not self.adapts:
            return self.costs(judged)
        breach = np.maximum(self.beyond(judged), 0.0).sum(axis=1)
        return self._mean_costs(judged) + BREACH * breach

    def _mean_costs(self, judged: Judged) -> NDArray[np.float64]:
        """The logarithm of the mean cost of each candidate, ``(num_candidates,)``."""
        logarithms = judged[:, :, 0]
        return np.log(np.exp(logarithms).mean(axis=1)) if self._pooled else logarithms.mean(axis=1)

    def adapt(self, beyond: NDArray[np.float64]) -> None:
        """Lets multipliers rise or fall with by how much the mean candidate is beyond limits."""
        change = np.exp(self._rate * np.clip(beyond / FULL_RATE, -1.0, 1.0))
        self.multipliers = np.clip(self.multipliers * change, *MULTIPLIERS)
