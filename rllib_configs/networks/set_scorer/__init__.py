"""A scorer of items: waiting jobs, candidate states, nodes; one network for any number of them."""

from typing import TYPE_CHECKING, Any

from cluster_env.core.world import World
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import Network, Shapes, Weights
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig


def _module() -> "type[TorchRLModule]":
    from rllib_configs.networks.set_scorer.module import SetScorerModule

    return SetScorerModule


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    options = SetScorerOptions.of(experiment.training)
    seen = _seen(experiment, world)
    return {"world": seen, "options": options, "seed": experiment.seed}


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> SetScorerSampler:
    return SetScorerSampler(_network(experiment, world), dict(weights), _seen(experiment, world))


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    state = _network(experiment, world).state_dict()
    return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


def _network(experiment: "ExperimentConfig", world: World) -> SetScorer:
    names = _seen(experiment, world).feature_names
    return SetScorer(names, SetScorerOptions.of(experiment.training))


def _seen(experiment: "ExperimentConfig", world: World) -> World:
    return seen_world(experiment.training, world, experiment.task.build_objective())


NETWORK = Network(_module, _model_config, _sampler, _shapes)
