"""A multilayer perceptron on one observation of a world: DeepRM's image, or numbers in a row.

The agents of Cunha's dissertation (2022, chapter 5) are of this kind. Unlike a set scorer it has
weights for each place of the queue, and serves only worlds whose observations have its size.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.errors import InputError
from cluster_env.core.observation import Observation, allowed_mask
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.spec import spec_of
from cluster_env.core.world import Mask, State, World
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.losses import symexp
from rllib_configs.networks.registry import Network, Shapes, Weights
from rllib_configs.networks.sampling import Sampler

_FORBIDDEN = -1e9  # finite, so that a row with nothing allowed gives no NaN
_PIECE = 1024  # rows whose values are computed at once

_SAMPLE_JOBSETS, _SAMPLE_STEPS = 8, 400
_FARTHEST, _NARROWEST = 5.0, 0.01


@dataclass(frozen=True)
class ObservedWorld:
    """States as rows of numbers from 0 to 1.

    Attributes:
        world: whose states they are.
        observation: of this world, an array of bounded numbers.
    """

    world: World
    observation: Observation

    @staticmethod
    def of(world: World, name: str) -> "ObservedWorld":
        """The view of an observation by name.

        Raises:
            InputError: if the world has no such observation, it is no array of bounded numbers, or
                it shows more than the world's states hold.
        """
        observation = spec_of(world).environments.observations.get(name)(world)
        seen = observation.world or world
        if not isinstance(observation.space, spaces.Box) or not observation.space.is_bounded():
            raise InputError(
                f"the network dense needs an observation of numbers in one array, but {name} is "
                f"none; take image or compact"
            )
        if seen != world:
            missing = [
                f"task.world.{field}={getattr(seen, field)}"
                for field in ("horizon", "horizon_step")
                if getattr(seen, field, None) != getattr(world, field, None)
            ]
            raise InputError(
                f"the observation {name} shows a horizon, which the world's states lack; set "
                f"{' and '.join(missing)}"
            )
        return ObservedWorld(world, observation)

    @property
    def size(self) -> int:
        """Numbers of a state."""
        return int(np.prod(self.observation.space.shape or ()))

    def shown(self, states: State) -> NDArray[Any]:
        """Observations of states, ``(n, size)``, of the type of their space."""
        space = self.observation.space
        shown = np.zeros((states.shape[0], *(space.shape or ())), space.dtype)
        self.observation.write(states, shown)
        return shown.reshape(states.shape[0], -1)

    def numbers(self, shown: NDArray[Any]) -> torch.Tensor:
        """The same from 0 to 1, float32 ``(n, size)``."""
        space = self.observation.space
        assert isinstance(space, spaces.Box)
        low, high = space.low.reshape(-1), space.high.reshape(-1)
        rows = shown.astype(np.float32, copy=False)
        if low.any() or (high != 1).any():
            rows = ((rows - low) / np.maximum(high - low, 1)).astype(np.float32)
        return torch.from_numpy(rows)


class Dense(nn.Module):
    """Layers with ReLU from an observation to logits, and as many from it to its value.

    Args:
        size: numbers of an observation.
        num_actions: logits.
        layers: units of each hidden layer.
        critic: whether there is a value.
        spread: mean and standard deviation of each number, which is brought to 0 and 1 by them;
            without, numbers enter as they are.
        seed: of the initial weights, which are normal with variance 2 / fan-in, those of the last
            layers with 0.01; biases are 0.
    """

    critic_scale: torch.Tensor  # (1,), with a critic alone
    spread: torch.Tensor  # (2, size)

    def __init__(
        self,
        size: int,
        num_actions: int,
        layers: tuple[int, ...],
        critic: bool,
        spread: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        super().__init__()
        rng = generator(seed, Purpose.INIT)
        self.policy = _perceptron((size, *layers, num_actions), rng)
        if critic:
            self.critic = _perceptron((size, *layers, 1), rng)
            self.register_buffer("critic_scale", torch.ones(1))
        self.scales = spread is not None
        if spread is not None:
            self.register_buffer("spread", torch.from_numpy(spread))

    def scaled(self, shown: torch.Tensor) -> torch.Tensor:
        """Observations, float32 ``(n, size)``, as the layers take them."""
        if not self.scales:
            return shown
        mean, deviation = self.spread
        return ((shown - mean) / deviation).clamp(-_FARTHEST, _FARTHEST)

    def forward(self, shown: torch.Tensor) -> torch.Tensor:
        """Logits, float32 ``(n, num_actions)``, of what `scaled` gives."""
        logits: torch.Tensor = self.policy(shown)
        return logits

    def value(self, shown: torch.Tensor) -> torch.Tensor:
        """Values, float32 ``(n,)``, of the same.

        They are symlogs in units of ``critic_scale``, as those of a `SetScorer`.
        """
        values: torch.Tensor = self.critic(shown).squeeze(1)
        return values


def _perceptron(widths: tuple[int, ...], rng: np.random.Generator) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(widths), 1):
        layer = nn.Linear(inputs, outputs)
        scale = 0.01 if number == len(widths) - 1 else (2.0 / inputs) ** 0.5
        drawn = rng.normal(0.0, scale, (outputs, inputs)).astype(np.float32)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(drawn))
            layer.bias.zero_()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def masked_logits(network: Dense, numbers: torch.Tensor, allowed: Mask) -> torch.Tensor:
    """Logits, ``(n, num_actions)``, of what `Dense.scaled` gives, and of what is allowed."""
    return network(numbers).masked_fill(torch.from_numpy(~allowed), _FORBIDDEN)


class DenseSampler(Sampler):
    """Acts with the weights of a `Dense`; a snapshot of them."""

    def __init__(self, network: Dense, weights: Weights, view: ObservedWorld) -> None:
        state = {
            name.removeprefix("network."): torch.from_numpy(np.array(value))
            for name, value in weights.items()
        }
        network.load_state_dict(state)
        self._network, self._view = network.eval(), view

    def logits(self, states: State) -> NDArray[np.float32]:
        """See `Sampler`."""
        with torch.inference_mode():
            allowed = allowed_mask(self._view.world, states)
            return masked_logits(self._network, self._numbers(states), allowed).numpy()

    def values(self, states: State) -> NDArray[np.float64]:
        """Values, float64 ``(n,)``."""
        values = np.empty(states.shape[0])
        with torch.inference_mode():
            for first in range(0, states.shape[0], _PIECE):
                piece = slice(first, first + _PIECE)
                value = self._network.value(self._numbers(states[piece]))
                values[piece] = symexp(value).numpy()
        return values * self._network.critic_scale.numpy()

    def _numbers(self, states: State) -> torch.Tensor:
        return self._network.scaled(self._view.numbers(self._view.shown(states)))


class DenseNetwork(Network):
    """The multilayer perceptron as a network, in worlds whose observation has its size."""

    module_place = "rllib_configs.networks.modules:DenseModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The view, and the network with its first weights."""
        view = ObservedWorld.of(world, experiment.training.observation)
        network = _network(experiment, view)
        if network.scales:
            network.spread.copy_(torch.from_numpy(_spread(experiment, view)))
        return {"view": view, "network": network}

    def sampler(self, experiment: ExperimentConfig, weights: Weights, world: World) -> DenseSampler:
        """See `DenseSampler`."""
        view = ObservedWorld.of(world, experiment.training.observation)
        return DenseSampler(_network(experiment, view), weights, view)

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Those of `Dense`."""
        view = ObservedWorld.of(world, experiment.training.observation)
        state = _network(experiment, view).state_dict()
        return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


def _network(experiment: ExperimentConfig, view: ObservedWorld) -> Dense:
    """The network, with a spread of 0 and 1 where its numbers are to be scaled."""
    training, size = experiment.training, view.size
    spread = np.stack([np.zeros(size, np.float32), np.ones(size, np.float32)])
    return Dense(
        size,
        view.world.num_actions,
        training.layers,
        training.critic,
        None if view.observation.space.dtype == np.uint8 else spread,
        experiment.seed,
    )


def _spread(experiment: ExperimentConfig, view: ObservedWorld) -> NDArray[np.float32]:
    """Mean and deviation of each number, ``(2, size)``, under random actions.

    The bounds of an observation are those of any machine and any job; jobs of a workload differ by
    a hundredth of that, and a network would learn to tell them apart slowly.
    """
    task = experiment.task.build(experiment.name, experiment.seed)
    rng = generator(experiment.seed, Purpose.INIT, 1)
    simulator = view.world.simulator()
    simulator.load(task.jobsets(Split.TRAIN, range(_SAMPLE_JOBSETS)), task.objective)
    seen = []
    for _ in range(_SAMPLE_STEPS):
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        if not rows.size:
            break
        states = simulator.states[rows]
        seen.append(view.numbers(view.shown(states)).numpy())
        allowed = allowed_mask(view.world, states)
        actions = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)
        simulator.step(rows, actions.astype(np.int32), np.empty(rows.size))
    numbers = np.concatenate(seen).astype(np.float64)
    deviation = np.maximum(numbers.std(axis=0), _NARROWEST)
    return np.stack([numbers.mean(axis=0), deviation]).astype(np.float32)


NETWORK = DenseNetwork()
