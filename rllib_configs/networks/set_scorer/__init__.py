"""A scorer of items: waiting jobs, candidate states, nodes; one network for any number of them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.world import World
from rllib_configs.config.options import TrainingSection
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import FeatureNames, Network, Shapes, Weights
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.sampler import SetScorerSampler


class SetScorerNetwork(Network):
    """The set scorer as a network, in the world as it sees it."""

    module_place = "rllib_configs.networks.modules:SetScorerModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """World, options and seed."""
        options = SetScorerOptions.of(experiment.training)
        return {"world": _seen(experiment, world), "options": options, "seed": experiment.seed}

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> SetScorerSampler:
        """See `SetScorerSampler`."""
        seen = _seen(experiment, world)
        network = SetScorer(seen.feature_names, SetScorerOptions.of(experiment.training))
        return SetScorerSampler(network, dict(weights), seen)

    def scorer(
        self, training: TrainingSection, feature_names: FeatureNames, seed: int | None = None
    ) -> SetScorer:
        """See `Network`."""
        return SetScorer(feature_names, SetScorerOptions.of(training).without_critic, seed)

    def scorer_sampler(
        self, training: TrainingSection, weights: Weights, world: World
    ) -> SetScorerSampler:
        """See `Network`."""
        network = self.scorer(training, world.feature_names)
        return SetScorerSampler(network, dict(weights), world)

    def in_context(self, weights: Weights, context: NDArray[np.float64]) -> Weights:
        """See `Network`: the context only changes the biases behind it."""
        of_context = weights["context.weight"][:, -context.size :]
        # No product of matrices: the order of its sums would be the processor's.
        added = (torch.from_numpy(of_context) * torch.tensor(context, dtype=torch.float32)).sum(1)
        return {**weights, "context.bias": weights["context.bias"] + added.numpy()}

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Those of `SetScorer`."""
        names = _seen(experiment, world).feature_names
        state = SetScorer(names, SetScorerOptions.of(experiment.training)).state_dict()
        return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


def _seen(experiment: ExperimentConfig, world: World) -> World:
    return seen_world(experiment.training, world, experiment.task.build_objective())


NETWORK = SetScorerNetwork()
