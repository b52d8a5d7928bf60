"""Networks of one's own: a PyTorch module from features to logits is all that has to be written."""

from typing import TYPE_CHECKING, Any

from cluster_env.core.world import World
from rllib_configs.networks.own_sampler import FeatureSampler, Make, made
from rllib_configs.networks.registry import Network, Shapes, Weights

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig


def network_of_features(make: Make) -> Network:
    """A network for the registry, from a function that makes a module.

    Args:
        make: called with the settings of ``training`` and the world. The module is called with
            items, float32 ``(rows, items, item size)``, and context, float32
            ``(rows, context size)``, and returns logits ``(rows, items + 1)``, void last. Actions
            that are not allowed are masked afterwards.
    """

    def module() -> "type[TorchRLModule]":
        from rllib_configs.networks.own_module import FeatureModule

        return FeatureModule

    def model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
        return {
            "make": make,
            "training": experiment.training,
            "world": world,
            "seed": experiment.seed,
        }

    def sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> FeatureSampler:
        return FeatureSampler(
            made(make, experiment.training, world, experiment.seed), weights, world
        )

    def shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
        state = made(make, experiment.training, world, experiment.seed).state_dict()
        return {f"network.{name}": tuple(value.shape) for name, value in state.items()}

    return Network(module, model_config, sampler, shapes)
