"""Networks of one's own: a PyTorch module from features to logits is all that has to be written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.seeding import Purpose, generator
from cluster_env.core.world import State, World
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import Network, Shapes, Weights
from rllib_configs.networks.sampling import Sampler

Make = Callable[[Any, World], nn.Module]

_FORBIDDEN = -1e9  # finite, so that a row with nothing allowed gives no NaN


def made(make: Make, training: Any, world: World, seed: int) -> nn.Module:
    """The module, its initial weights drawn from the run's seed."""
    with torch.random.fork_rng(devices=[]):  # modules draw from PyTorch's global state
        torch.manual_seed(int(generator(seed, Purpose.INIT).integers(2**31)))
        return make(training, world)


def masked_logits(network: nn.Module, world: World, states: State) -> torch.Tensor:
    """Logits, float32 ``(rows, num_actions)``, of states, ``(rows, state_size)``."""
    seen = world.features(states)
    logits = network(torch.from_numpy(seen.items), torch.from_numpy(seen.context))
    return logits.masked_fill(torch.from_numpy(~seen.allowed), _FORBIDDEN)


class OwnSampler(Sampler):
    """Acts with the weights of such a network."""

    def __init__(self, network: nn.Module, weights: Weights, world: World) -> None:
        state = {
            name.removeprefix("network."): torch.from_numpy(np.array(value))
            for name, value in weights.items()
        }
        network.load_state_dict(state)
        self._network, self._world = network.eval(), world

    def logits(self, states: State) -> NDArray[np.float32]:
        """See `Sampler`."""
        with torch.inference_mode():
            return masked_logits(self._network, self._world, states).numpy()


@dataclass(frozen=True)
class _OwnNetwork(Network):
    make: Make

    module_place: ClassVar[str] = "rllib_configs.networks.modules:FeatureModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        return {
            "make": self.make,
            "training": experiment.training,
            "world": world,
            "seed": experiment.seed,
        }

    def sampler(self, experiment: ExperimentConfig, weights: Weights, world: World) -> OwnSampler:
        network = made(self.make, experiment.training, world, experiment.seed)
        return OwnSampler(network, weights, world)

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        state = made(self.make, experiment.training, world, experiment.seed).state_dict()
        return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


def network_of_features(make: Make) -> Network:
    """A network for the registry, from a function that makes a module.

    Args:
        make: called with the settings of ``training`` and the world. The module is called with
            items, float32 ``(rows, items, item size)``, and context, float32
            ``(rows, context size)``, and returns logits ``(rows, items + 1)``, void last. Actions
            that are not allowed are masked afterwards.
    """
    return _OwnNetwork(make)
