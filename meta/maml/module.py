"""A set scorer with an inner rate for each of its parts, as an RLModule."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import nn

from cluster_env.core.world import World
from meta.maml.steps import Parameters
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import network_named

NETWORK, RATES, ENTROPY = "network.", "rates.", "entropy_coefficient"


class MetaSetScorerModule(TorchRLModule):
    """A scorer of items with the state of meta-learning, which travels in checkpoints and policies.

    The state holds the network's parameters under ``network.``, the logarithm of the inner rate of
    each of them under ``rates.``, with ``_`` for ``.`` in its name, and ``entropy_coefficient``,
    all float32, the latter two without dimensions.

    ``model_config`` holds what `meta_model_config` says.
    """

    entropy_coefficient: torch.Tensor

    def setup(self) -> None:
        """Builds the network; all rates start alike."""
        config = self.model_config
        self._world: World = config["world"]
        training, names = config["training"], self._world.feature_names
        kind = network_named(training.network)
        self.network = kind.scorer(training, names, int(config["seed"]))
        log_rate, learn = float(np.log(config["inner_rate"])), bool(config["learn_rates"])
        self.rates = nn.ParameterDict(
            {
                block(name): nn.Parameter(torch.tensor(log_rate), requires_grad=learn)
                for name, _ in self.network.named_parameters()
            }
        )
        self.register_buffer(ENTROPY, torch.tensor(float(config["entropy"])))

    def parameters_by_name(self) -> Parameters:
        """The network's parameters, as `meta.maml.steps` take them."""
        return dict(self.network.named_parameters())

    def rates_by_name(self) -> Parameters:
        """The logarithms of the inner rates, by the names of the parameters."""
        return {name: self.rates[block(name)] for name, _ in self.network.named_parameters()}

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits of the states under ``Columns.OBS``, before any adaptation."""
        features = self._world.features(batch[Columns.OBS].numpy())
        return {Columns.ACTION_DIST_INPUTS: self.network(features)}


def meta_model_config(experiment: ExperimentConfig) -> dict[str, Any]:
    """What `MetaSetScorerModule` is built from."""
    task = experiment.task
    return {
        "world": seen_world(experiment.training, task.world, task.build_objective()),
        "training": experiment.training,
        "seed": experiment.seed,
        "inner_rate": experiment.training.inner_rate,
        "learn_rates": experiment.training.learn_rates,
        "entropy": experiment.training.entropy,
    }


def block(name: str) -> str:
    """Name of a parameter's inner rate among the ``rates.`` of a state."""
    return name.replace(".", "_")


def split_weights(weights: Mapping[str, NDArray[np.float32]]) -> tuple[Parameters, Parameters]:
    """The network's parameters and the logarithms of their inner rates, both by its names.

    From the state of a `MetaSetScorerModule`.
    """
    parameters = {
        name.removeprefix(NETWORK): torch.from_numpy(np.array(value, np.float32))
        for name, value in weights.items()
        if name.startswith(NETWORK)
    }
    rates = {name: torch.tensor(float(weights[f"{RATES}{block(name)}"])) for name in parameters}
    return parameters, rates
