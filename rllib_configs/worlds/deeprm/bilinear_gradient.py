"""Gradients of policy losses by the weights of a bilinear scorer, for `meta`."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.policy import NOT_ALLOWED
from cluster_env.core.world import World
from rllib_configs.conditioned import ConditionedWorld
from rllib_configs.networks.registry import FeatureNames
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyLoss, differentiate
from rllib_configs.worlds.deeprm.bilinear_kernels import add_gradient, observe, score_observed
from rllib_configs.worlds.deeprm.bilinear_weights import (
    STATE_FEATURES,
    BilinearShapes,
    seen_of,
    start_weights,
)

Vector = NDArray[np.float32]

_PIECE = 256  # rows; what is observed of them fits a cache


class BilinearWeights(nn.Module):
    """The weights of a bilinear scorer as parameters; what acts by them is compiled.

    Args:
        feature_names: of the world, as a set scorer would see it: they say how many classes of jobs
            there are, and how much the scorer is conditioned on.
        ahead: see `BilinearOptions`.
        books: see `BilinearOptions`.
        temperature: by which scores are divided to be logits.
        seed: None leaves the weights 0; others are those that a search begins with.

    Attributes:
        parts: parameters that may be adapted without the others, see `SetScorer`.
    """

    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head": ("job", "classes", "void", "told_features"),
        "direct": ("classes", "void"),
        "classes": ("classes",),
    }

    def __init__(
        self,
        feature_names: FeatureNames,
        ahead: int,
        books: bool,
        temperature: float,
        seed: int | None,
    ) -> None:
        super().__init__()
        self.shapes = BilinearShapes.of(feature_names)
        self.ahead, self.books, self.temperature = ahead, books, temperature
        for name, value in start_weights(self.shapes).items():
            start = value if seed is not None else np.zeros_like(value)
            self.register_parameter(name, nn.Parameter(torch.from_numpy(start)))

    def flat_form(self, world: World) -> "FlatBilinear":
        """See `meta.maml.first_order.FlatNetwork`."""
        return FlatBilinear(self, world)


class FlatBilinear:
    """A bilinear scorer as a vector; see `meta.maml.first_order.FlatNetwork`.

    Args:
        network: whose own parameters are not used.
        world: as the scorer sees it, which may be conditioned.
    """

    def __init__(self, network: BilinearWeights, world: World) -> None:
        self._shapes, self._temperature = network.shapes, network.temperature
        self.names = tuple(self._shapes.by_name)
        self.sizes = np.array([int(np.prod(shape)) for shape in self._shapes.by_name.values()])
        condition = world.condition if isinstance(world, ConditionedWorld) else ()
        self._told = np.array([value for _, value in condition], np.float32)
        plain: Any = world.world if isinstance(world, ConditionedWorld) else world
        self._seen_of = seen_of(plain, network.ahead, network.books)
        slots = world.num_actions - 1
        self._looks = np.empty((_PIECE, slots, self._shapes.num_looks), np.float32)
        self._seen = np.empty((_PIECE, self._shapes.num_seen), np.float32)
        self._allowed = np.empty((_PIECE, slots + 1), np.bool_)
        self._logits = np.empty((_PIECE, slots + 1), np.float32)
        self._slopes = np.empty((_PIECE, slots + 1), np.float32)

    def flatten(self, parameters: Mapping[str, torch.Tensor]) -> Vector:
        """See `FlatNetwork`."""
        arrays = [parameters[name].detach().numpy().ravel() for name in self.names]
        return np.concatenate(arrays).astype(np.float32)

    def by_name(self, vector: Vector) -> dict[str, Vector]:
        """See `FlatNetwork`."""
        pieces = np.split(vector, np.cumsum(self.sizes)[:-1])
        shapes = self._shapes.by_name.items()
        return {
            name: piece.reshape(shape) for (name, shape), piece in zip(shapes, pieces, strict=True)
        }

    def show(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The states themselves: what is observed of them takes a hundred times their memory."""
        return np.ascontiguousarray(states)

    def gradient(
        self, vector: Vector, choices: Choices, loss: PolicyLoss
    ) -> tuple[NDArray[np.float32], float]:
        """See `rllib_configs.networks.set_scorer.policy_gradient.PolicyGradient`."""
        job, void = self._shapes.joined(self.by_name(vector))
        bounds = choices.bounds.tolist()
        gradients = np.zeros((len(bounds) - 1, vector.size), np.float32)
        entropy = 0.0
        for gradient, begin, end in zip(gradients, bounds, bounds[1:], strict=False):
            of_job, of_void = np.zeros(job.shape), np.zeros(void.shape)
            for first in range(begin, end, _PIECE):
                last = min(first + _PIECE, end)
                entropy += self._add(
                    choices, slice(first, last), last - first, job, void, loss, of_job, of_void
                )
            parts = self._shapes.split(of_job, of_void)
            gradient[:] = np.concatenate([parts[name].ravel() for name in self.names])
        return gradients, entropy / max(1, choices.num_rows)

    def _add(
        self,
        choices: Choices,
        rows: slice,
        count: int,
        job: Vector,
        void: Vector,
        loss: PolicyLoss,
        of_job: NDArray[np.float64],
        of_void: NDArray[np.float64],
    ) -> float:
        """Adds the gradient of some rows; returns the sum of their entropies."""
        looks, seen, allowed = self._looks[:count], self._seen[:count], self._allowed[:count]
        own = np.empty((count, len(STATE_FEATURES)), np.float32)
        observe(choices.features[rows], *self._seen_of, looks, own, allowed)
        seen[:, : own.shape[1]], seen[:, own.shape[1] :] = own, self._told
        self._logits[:count] = NOT_ALLOWED
        score_observed(looks, seen, allowed, job, void, self._temperature, self._logits)
        entropy = differentiate(
            self._logits,
            allowed,
            choices.actions[rows],
            choices.log_probabilities[rows],
            choices.advantages[rows],
            loss,
            choices.num_rows,
            self._slopes,
        )
        add_gradient(looks, seen, allowed, self._slopes, self._temperature, of_job, of_void)
        return float(entropy)
