"""The policy advisor as an RLModule, which RLlib trains."""

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.worlds.panda.world import Panda
from meta.panda.advisor import initial_advisor
from meta.panda.sampler import logits_of


class AdvisorModule(TorchRLModule):
    """`PolicyAdvisor`, which gets states and asks their world for the features.

    ``model_config`` holds ``experiment`` and ``world``.
    """

    def setup(self) -> None:
        """Builds the network, and the tree that it follows."""
        self._world: Panda = self.model_config["world"]
        self.network = initial_advisor(self.model_config["experiment"], self._world)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits of the states under ``Columns.OBS``."""
        return {
            Columns.ACTION_DIST_INPUTS: logits_of(
                self.network, self._world, batch[Columns.OBS].numpy()
            )
        }
