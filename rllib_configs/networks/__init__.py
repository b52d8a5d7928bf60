"""Policies as networks, chosen by name. Only what RLlib trains them with needs Ray."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.deeprm.lookups import LookupLayout
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.sampling import Sampler
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
from rllib_configs.registries import NETWORKS, found
from rllib_configs.schema import ExperimentConfig
from rllib_configs.worlds.deeprm.mlp import DeepRMSampler

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Network:
    """A network by name.

    Attributes:
        module: returns what RLlib trains.
        model_config: what the module is built from.
        sampler: what samples with given weights, outside of RLlib; it fails if the weights are
            not those of this network.
    """

    module: "Callable[[], type[TorchRLModule]]"
    model_config: Callable[[ExperimentConfig], dict[str, Any]]
    sampler: Callable[[ExperimentConfig, Weights], Sampler]


def network_spec(experiment: ExperimentConfig) -> "RLModuleSpec":
    """What RLlib builds an experiment's network from."""
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    network = _network(experiment)
    return RLModuleSpec(
        module_class=network.module(), model_config=network.model_config(experiment)
    )


def make_sampler(experiment: ExperimentConfig, weights: Weights) -> Sampler:
    """A sampler of an experiment's network.

    Raises:
        RuntimeError: if the weights are those of another network.
    """
    return _network(experiment).sampler(experiment, weights)


def _network(experiment: ExperimentConfig) -> Network:
    network: Network = found(NETWORKS.get(experiment.training.network).network)
    return network


def _model_config(experiment: ExperimentConfig) -> dict[str, Any]:
    entry = NETWORKS.get(experiment.training.network)
    options = {name: getattr(experiment.training, name) for name in entry.options.model_fields}
    return {
        "cluster": experiment.task.world.cluster.model_dump(),
        **options,
        "seed": experiment.seed,
    }


def _deeprm_sampler(experiment: ExperimentConfig, weights: Weights) -> DeepRMSampler:
    cluster, training = experiment.task.world.cluster.build(), experiment.training
    layout = LookupLayout(StateLayout(cluster), training.since_column)
    expected = {
        "hidden_weight": (layout.num_inputs, training.hidden),
        "hidden_bias": (training.hidden,),
        "head_weight": (training.hidden, cluster.num_actions),
        "head_bias": (cluster.num_actions,),
    }
    found = {name: value.shape for name, value in weights.items()}
    if found != expected:
        raise RuntimeError(f"the weights have shapes {found}, but the config asks for {expected}")
    return DeepRMSampler(layout, dict(weights))


def _slot_scorer_sampler(experiment: ExperimentConfig, weights: Weights) -> SetScorerSampler:
    training = experiment.training
    network = SetScorer(
        experiment.task.world.cluster.build(),
        training.hidden,
        None,
        training.critic,
        training.show_window,
        training.skip_connection,
    )
    own = {name: value for name, value in weights.items() if name.startswith("network.")}
    return SetScorerSampler(network, own)  # an algorithm may keep more beside the network


def _deeprm_module() -> "type[TorchRLModule]":
    from rllib_configs.networks.rl_modules import DeepRMModule

    return DeepRMModule


def _slot_scorer_module() -> "type[TorchRLModule]":
    from rllib_configs.networks.rl_modules import SetScorerModule

    return SetScorerModule


DEEPRM_MLP = Network(_deeprm_module, _model_config, _deeprm_sampler)
SET_SCORER = Network(_slot_scorer_module, _model_config, _slot_scorer_sampler)
