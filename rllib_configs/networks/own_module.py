"""A network of features as an RLModule, which RLlib trains."""

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from rllib_configs.networks.own import made, masked_logits


class FeatureModule(TorchRLModule):
    """Gets states and asks their world for the features.

    ``model_config`` holds ``make``, ``training``, ``world`` and ``seed``; see
    `rllib_configs.networks.own.network_of_features`.
    """

    def setup(self) -> None:
        """Builds the network."""
        given = self.model_config
        self.network = made(given["make"], given["training"], given["world"], int(given["seed"]))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits of the states under ``Columns.OBS``."""
        states = batch[Columns.OBS].numpy()
        return {
            Columns.ACTION_DIST_INPUTS: masked_logits(
                self.network, self.model_config["world"], states
            )
        }
