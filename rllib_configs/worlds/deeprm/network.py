"""DeepRM's own network, which reads states instead of images."""

from typing import TYPE_CHECKING, Any

from cluster_env.core.errors import InputError
from cluster_env.core.world import World
from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.worlds.deeprm.mlp import DeepRMSampler, lookup_layout, shapes

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig


def _module() -> "type[TorchRLModule]":
    from rllib_configs.worlds.deeprm.module import DeepRMModule

    return DeepRMModule


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    return {
        "world": _require_deeprm(world),
        "hidden": experiment.training.hidden,
        "since_column": experiment.training.since_column,
        "seed": experiment.seed,
    }


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> DeepRMSampler:
    layout = lookup_layout(_require_deeprm(world), experiment.training.since_column)
    return DeepRMSampler(layout, dict(weights))


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    training = experiment.training
    acting, trained = _require_deeprm(world), _require_deeprm(experiment.task.build_world())
    if acting.cluster != trained.cluster:
        raise InputError(
            "a policy of DeepRM's network can be used on the cluster alone that it was trained for"
        )
    return shapes(lookup_layout(acting, training.since_column), training.hidden)


def _require_deeprm(world: World) -> DeepRM:
    return require_kind(world, DeepRM, "the network deeprm_mlp reads states", "set_scorer")


NETWORK = Network(_module, _model_config, _sampler, _shapes)
