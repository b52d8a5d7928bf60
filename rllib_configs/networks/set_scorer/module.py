"""The set scorer as an RLModule, which RLlib trains; all else about it needs no Ray."""

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.core.world import World
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions


class SetScorerModule(TorchRLModule):
    """`SetScorer` as an RLModule, which gets states and asks their world for the features.

    ``model_config`` holds ``world``, ``options`` (`SetScorerOptions`) and ``seed``.
    """

    def setup(self) -> None:
        """Builds the network."""
        self._world: World = self.model_config["world"]
        self._options: SetScorerOptions = self.model_config["options"]
        seed = int(self.model_config["seed"])
        self.network = SetScorer(self._world.feature_names, self._options, seed)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, and values if there is a critic, of the states under ``Columns.OBS``."""
        features = self._world.features(batch[Columns.OBS].numpy())
        logits, pooled = self.network.score_items(features)
        if not self._options.critic:
            return {Columns.ACTION_DIST_INPUTS: logits}
        return {
            Columns.ACTION_DIST_INPUTS: logits,
            Columns.VF_PREDS: self.network.value(pooled),
        }
