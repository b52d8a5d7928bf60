"""Policies as networks, chosen by name. Only what RLlib trains them with needs Ray."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.registry import Registry
from cluster_env.worlds.deeprm.lookups import LookupLayout
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.sampling import Sampler
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler
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


NETWORKS: Registry[Network] = Registry("network")


def network_spec(experiment: ExperimentConfig) -> "RLModuleSpec":
    """What RLlib builds an experiment's network from."""
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    network = NETWORKS.get(experiment.training.network)
    return RLModuleSpec(
        module_class=network.module(), model_config=network.model_config(experiment)
    )


def make_sampler(experiment: ExperimentConfig, weights: Weights) -> Sampler:
    """A sampler of an experiment's network.

    Raises:
        RuntimeError: if the weights are those of another network.
    """
    return NETWORKS.get(experiment.training.network).sampler(experiment, weights)


def _model_config(experiment: ExperimentConfig) -> dict[str, Any]:
    return {
        "cluster": experiment.task.cluster.model_dump(),
        "hidden": experiment.training.hidden,
        "since_column": experiment.training.since_column,
        "critic": experiment.training.critic,
        "show_window": experiment.training.show_window,
        "skip_connection": experiment.training.skip_connection,
        "seed": experiment.seed,
    }


def _deeprm_sampler(experiment: ExperimentConfig, weights: Weights) -> DeepRMSampler:
    cluster, training = experiment.task.cluster.build(), experiment.training
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
        experiment.task.cluster.build(),
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


NETWORKS.register("deeprm_mlp")(Network(_deeprm_module, _model_config, _deeprm_sampler))
NETWORKS.register("set_scorer")(Network(_slot_scorer_module, _model_config, _slot_scorer_sampler))
