"""Networks by name: what RLlib trains, and what acts with the weights that came out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import World
from rllib_configs.networks.sampling import Sampler
from rllib_configs.registries import NETWORKS, found

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Network:
    """A network by name.

    Attributes:
        module: returns what RLlib trains.
        model_config: what the module is built from, given the experiment and its world.
        sampler: what samples with given weights, outside of RLlib, in a world that may differ from
            the experiment's; it fails if the weights are not those of this network.
    """

    module: "Callable[[], type[TorchRLModule]]"
    model_config: "Callable[[ExperimentConfig, World], dict[str, Any]]"
    sampler: "Callable[[ExperimentConfig, Weights, World], Sampler]"


def network_spec(experiment: "ExperimentConfig") -> "RLModuleSpec":
    """What RLlib builds an experiment's network from."""
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    network = network_of(experiment)
    world = experiment.task.build_world()
    return RLModuleSpec(
        module_class=network.module(), model_config=network.model_config(experiment, world)
    )


def make_sampler(
    experiment: "ExperimentConfig", weights: Weights, world: World | None = None
) -> Sampler:
    """A sampler of an experiment's network.

    Args:
        experiment: what the weights were trained with.
        weights: by name, as the RLModule has them.
        world: where it acts, by default where it was trained. It may have other rules, and for a
            set scorer other capacities and another number of items: features are computed by it.

    Raises:
        RuntimeError: if the weights are those of another network.
    """
    network = network_of(experiment)
    return network.sampler(
        experiment, weights, experiment.task.build_world() if world is None else world
    )


def network_of(experiment: "ExperimentConfig") -> Network:
    """The network that an experiment names."""
    network: Network = found(NETWORKS.get(experiment.training.network).network)
    return network
