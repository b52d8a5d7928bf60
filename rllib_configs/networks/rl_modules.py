"""The networks as RLModules, which RLlib trains; all else about them needs no Ray."""

from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.core.seeding import Purpose, generator
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.lookups import LookupLayout
from cluster_env.worlds.deeprm.state import StateLayout
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.worlds.deeprm.lookup_sum import LookupLinear


class DeepRMModule(TorchRLModule):
    """Image, 20 rectified units, one logit for each slot and for void: 89,451 parameters.

    The image is never made: its product with the first weight is looked up from prefix sums. The
    network has no mask, as in the paper: an action that cannot be carried out lets time pass. With
    the released code's last column of the image it has 89,851 parameters.

    ``model_config`` holds ``cluster`` (a `Cluster` or its fields), ``hidden``, ``since_column`` and
    ``seed``.
    """

    def setup(self) -> None:
        """Builds the layers; weights are normal with variance 1 / fan-in, biases 0.

        The paper does not say how the network starts.
        """
        cluster = self.model_config["cluster"]
        if isinstance(cluster, dict):
            cluster = Cluster(**cluster)
        hidden = int(self.model_config["hidden"])
        self.lookup_layout = LookupLayout(
            StateLayout(cluster), bool(self.model_config.get("since_column", False))
        )
        rng = generator(int(self.model_config["seed"]), Purpose.INIT)
        self.hidden_weight = _normal(rng, self.lookup_layout.num_inputs, hidden)
        self.hidden_bias = torch.nn.Parameter(torch.zeros(hidden))
        self.head_weight = _normal(rng, hidden, cluster.num_actions)
        self.head_bias = torch.nn.Parameter(torch.zeros(cluster.num_actions))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, float32 ``(rows, actions)``, of the states under ``Columns.OBS``."""
        lookups = torch.from_numpy(self.lookup_layout.lookups(batch[Columns.OBS].numpy()))
        first = LookupLinear.apply(
            self.hidden_weight, self.hidden_bias, lookups, self.lookup_layout
        )
        logits = torch.relu(first) @ self.head_weight + self.head_bias
        return {Columns.ACTION_DIST_INPUTS: logits}


class SetScorerModule(TorchRLModule):
    """`SetScorer` as an RLModule.

    ``model_config`` holds ``cluster``, ``hidden``, ``seed``, ``critic``, ``show_window`` and
    ``skip_connection``.
    """

    def setup(self) -> None:
        """Builds the network."""
        cluster = Cluster(**self.model_config["cluster"])
        width, seed = int(self.model_config["hidden"]), int(self.model_config["seed"])
        options = (
            bool(self.model_config[key]) for key in ("critic", "show_window", "skip_connection")
        )
        self.network = SetScorer(cluster, width, seed, *options)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, and values if there is a critic, of the states under ``Columns.OBS``."""
        logits, pooled = self.network.score_slots(batch[Columns.OBS].numpy())
        if not self.model_config["critic"]:
            return {Columns.ACTION_DIST_INPUTS: logits}
        return {
            Columns.ACTION_DIST_INPUTS: logits,
            Columns.VF_PREDS: self.network.value(pooled),
        }


def _normal(rng: np.random.Generator, rows: int, columns: int) -> torch.nn.Parameter:
    weights = rng.normal(0.0, rows**-0.5, (rows, columns)).astype(np.float32)
    return torch.nn.Parameter(torch.from_numpy(weights))
