r"""Steps of first-order MAML without a graph, compiled; the numbers are those of `meta.maml.steps`.

Where the inner gradient is a constant for the outer loss, the chain rule is short. With
:math:`w_k = \alpha c_k g_k` the update of inner step k and :math:`G` the gradient of the outer loss
at the adapted parameters, the gradient by the parameters is :math:`G`, and that by the logarithm of
the inner rate of block b is :math:`-\sum_k \sum_{i \in b} w_{k,i} G_i`. All parameters are one
vector, so that this takes a few operations on few arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.world import State, World
from meta.maml.decisions import Decisions
from meta.maml.steps import LEAST_SQUARE, Parameters, StepOptions, rate_of_step
from rllib_configs.networks.set_scorer.kernels import PARAMETERS, pack, unpack, weights_type
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyGradient, PolicyLoss

Vector = NDArray[np.float32]  # (num_parameters,)

# Megabytes of room to work in, which worlds of one shape share: each task may have its own world.
_policy_gradient = lru_cache(maxsize=4)(PolicyGradient)


@dataclass(frozen=True, eq=False)
class OuterGradient:
    """The gradient of a task's outer loss, with statistics.

    Attributes:
        parameters: float32 ``(num_parameters,)``.
        rates: float64 ``(num_blocks,)``, by the logarithms of the inner rates.
        entropy: mean over the decisions of the last stage, in nats.
        inner_norm: norm of the displacement from the parameters to the adapted ones.
    """

    parameters: Vector
    rates: NDArray[np.float64]
    entropy: float
    inner_norm: float


class FlatNetwork(Protocol):
    """A network whose parameters are one vector, with compiled gradients of policy losses.

    Attributes:
        names: of the parameters, in the order in which the vector has them.
        sizes: of each; one more at the end for what no parameter fills.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]

    def flatten(self, parameters: Mapping[str, torch.Tensor]) -> Vector:
        """All parameters by name as one vector."""

    def by_name(self, vector: Vector) -> dict[str, NDArray[np.float32]]:
        """A vector in the shapes of the parameters; views as far as possible."""

    def show(self, states: State) -> Any:
        """What the network sees of states, which does not change with its parameters."""

    def gradient(
        self, vector: Vector, choices: Choices, loss: PolicyLoss
    ) -> tuple[NDArray[np.float32], float]:
        """See `PolicyGradient`."""


class FlatSetScorer:
    """A `SetScorer` of float32 as a `FlatNetwork`; its own parameters are not used."""

    def __init__(self, network: SetScorer, world: World) -> None:
        self._network, self._world = network, world
        width, context_size = network.context.weight.shape
        item_size = network.job.weight.shape[1]
        self._weights = weights_type(context_size, item_size, width)
        num_items = world.num_actions - 1
        self.gradient = _policy_gradient(context_size, num_items, item_size, width)
        self.names = (*PARAMETERS, *network.skip_names)
        parameters = dict(network.named_parameters())
        sizes = [parameters[name].numel() for name in self.names]
        rest = self._weights.itemsize // 4 - sum(sizes)  # a skip connection that is not there
        self.sizes = np.array([*sizes, *([rest] if rest else [])])

    def flatten(self, parameters: Mapping[str, torch.Tensor]) -> Vector:
        """See `FlatNetwork`."""
        arrays = [parameters[name].detach().numpy() for name in self.names]
        skip = arrays[len(PARAMETERS) :]
        parts = [*arrays[: len(PARAMETERS)], *([np.concatenate(skip)] if skip else [])]
        return pack(parts).view(np.float32)

    def by_name(self, vector: Vector) -> dict[str, NDArray[np.float32]]:
        """See `FlatNetwork`."""
        *arrays, skip = unpack(vector.view(self._weights))
        cuts = np.cumsum(self.sizes[len(PARAMETERS) :])[:-1]
        return dict(zip(self.names, [*arrays, *np.split(skip, cuts)], strict=False))

    def show(self, states: State) -> Any:
        """See `FlatNetwork`."""
        return self._network.shown(self._world.features(states))


def flat_network(network: nn.Module, world: World) -> FlatNetwork:
    """A network that scores items one by one as a vector; it may bring its own ``flat_form``."""
    make = getattr(network, "flat_form", None)
    if make is not None:
        flat: FlatNetwork = make(world)
        return flat
    assert isinstance(network, SetScorer)
    return FlatSetScorer(network, world)


class FirstOrder:
    """Inner and outer steps of a network, whose own parameters are not used."""

    def __init__(self, network: nn.Module, world: World, options: StepOptions) -> None:
        self._flat, self._options = flat_network(network, world), options
        # Where the block of each parameter is in the vector of all.
        self._names, self._sizes = self._flat.names, self._flat.sizes
        self._starts = np.cumsum(self._sizes) - self._sizes
        adapted = self._names if options.adapted is None else options.adapted
        rest = self._sizes.size - len(self._names)
        fixed = [name not in adapted for name in self._names] + [True] * rest
        self._fixed = np.repeat(fixed, self._sizes) if any(fixed) else None

    def flatten(self, parameters: Mapping[str, torch.Tensor]) -> Vector:
        """All parameters by name as one vector."""
        return self._flat.flatten(parameters)

    def by_name(self, vector: Vector) -> dict[str, NDArray[np.float32]]:
        """A vector in the shapes of the parameters; views as far as possible."""
        return self._flat.by_name(vector)

    def rates_by_name(self, values: NDArray[np.float64]) -> dict[str, float]:
        """Numbers of the blocks by the names of the parameters."""
        return dict(zip(self._names, values.tolist(), strict=False))

    def choices(self, decisions: Decisions, adapted_on: bool) -> Choices:
        """What the network sees of decisions, which does not change with its parameters.

        If an inner step is made from them, jobsets may have to agree.
        """
        bounds = np.array([0, decisions.num_rows])
        if adapted_on and self._options.shrink and decisions.num_rows:
            # Those of a jobset together, because the gradient of each is asked for.
            order = np.argsort(decisions.jobset, kind="stable")
            counts = np.bincount(decisions.jobset)
            bounds = np.concatenate([[0], np.cumsum(counts[counts > 0])])
            decisions = decisions.of_rows(order)
        return Choices(
            self._flat.show(decisions.states),
            decisions.actions,
            decisions.log_probabilities,
            decisions.advantages,
            bounds,
        )

    def update(self, parameters: Vector, rates: Vector, choices: Choices) -> Vector:
        """What an inner step subtracts from the parameters; nothing moves without choices.

        Rates are float32 ``(num_parameters,)``, the inner rate of each; see `spread_rates`.
        """
        if choices.num_rows == 0:
            return np.zeros_like(parameters)
        options = self._options
        parts, _ = self._flat.gradient(
            parameters, choices, PolicyLoss(options.surrogate == "ratio")
        )
        if self._fixed is not None:
            parts[:, self._fixed] = 0
        gradient = parts.sum(axis=0)
        # One over the length of each block, or what clips the length of the whole.
        factor: Vector | np.float32
        if options.normalize:
            square = self._by_block(np.square(gradient, dtype=np.float64))
            lengths = (1.0 / np.sqrt(square + LEAST_SQUARE)).astype(np.float32)
            factor = np.repeat(lengths, self._sizes)
        else:
            length = np.sqrt(_square(gradient)) + 1e-12
            factor = np.float32(min(1.0, options.gradient_clip / length))
        if len(parts) > 1:
            factor = factor * self._shrinkage(parts, gradient)
        return rates * (factor * gradient)

    def why_unchanged(self, decisions: Decisions) -> str:
        """Why a step on these decisions changed no parameter, as a clause."""
        if decisions.num_rows == 0:
            return "no decision had a choice"
        if not decisions.advantages.any():
            return "episodes of the same jobset cost the same"
        if self._options.shrink and np.unique(decisions.jobset).size > 1:
            return "the jobsets did not agree on a direction"
        return "the gradient was too small"

    def _shrinkage(self, parts: Vector, gradient: Vector) -> Vector:
        """How much of each parameter's step the jobsets agree on; one number for a block."""
        count = len(parts)
        square = self._by_block(np.square(gradient, dtype=np.float64))
        alone = self._by_block(np.square(parts, dtype=np.float64).sum(axis=0))
        signal = count / (count - 1) * (square - alone)
        shares = np.clip(signal / (square + LEAST_SQUARE), 0.0, 1.0)
        return np.repeat(shares.astype(np.float32), self._sizes)

    def _by_block(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = np.add.reduceat(values, self._starts)
        return sums

    def spread_rates(self, rates: Mapping[str, torch.Tensor]) -> Vector:
        """The first inner rate of each parameter, from the logarithms by name of its block."""
        logarithms = np.zeros(self._sizes.size, np.float32)
        logarithms[: len(self._names)] = [float(rates[name].detach()) for name in self._names]
        return np.repeat(np.exp(logarithms), self._sizes)

    def outer_gradient(
        self, start: Vector, rates: Vector, stages: Sequence[Choices], loss: PolicyLoss
    ) -> OuterGradient:
        """The gradient of a task's outer loss; see `meta.maml.steps.outer_loss` and `update`."""
        *before, last = stages
        # Adapt on all stages but the last, and take the gradient of that one where this leads.
        adapted, displacement = start, np.zeros_like(start)
        for step, choices in enumerate(before):
            update = self.update(adapted, rates * np.float32(rate_of_step(step)), choices)
            adapted = adapted - update
            displacement += update
        (gradient,), entropy = self._flat.gradient(adapted, last, loss)
        # By the logarithm of a rate: what its block was moved by times the gradient.
        slopes = -self._by_block((displacement * gradient).astype(np.float64))
        return OuterGradient(gradient, slopes, entropy, np.sqrt(_square(displacement)))

    def inner_step(
        self,
        parameters: Parameters,
        rates: Mapping[str, torch.Tensor],
        decisions: Decisions,
        step: int = 0,
    ) -> Parameters:
        """The adapted parameters, without a graph; see `meta.maml.steps.adapt`.

        Rates are logarithms of those of the first step; so many steps were made before.
        """
        start = self.flatten(parameters)
        spread = self.spread_rates(rates) * np.float32(rate_of_step(step))
        update = self.update(start, spread, self.choices(decisions, adapted_on=True))
        adapted = self.by_name(start - update)
        return {name: torch.from_numpy(np.ascontiguousarray(adapted[name])) for name in parameters}


def _square(values: Vector) -> float:
    """Sum of squares over all elements."""
    return float(np.square(values, dtype=np.float64).sum())  # one order, however many threads
