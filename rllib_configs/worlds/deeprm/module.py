"""DeepRM's network as an RLModule."""

from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.core.seeding import Purpose, generator
from rllib_configs.networks.linear import Linear
from rllib_configs.worlds.deeprm.lookup_sum import LookupLinear
from rllib_configs.worlds.deeprm.mlp import lookup_layout, shapes


class DeepRMModule(TorchRLModule):
    """Image, 20 rectified units, one logit for each slot and for void: 89,451 parameters.

    The image is never made: its product with the first weight is looked up from prefix sums. The
    network has no mask, as in the paper: an action that cannot be carried out lets time pass. With
    the released code's last column of the image it has 89,851 parameters.

    ``model_config`` holds ``world`` (`cluster_env.worlds.deeprm.DeepRM`), ``hidden``,
    ``since_column`` and ``seed``.
    """

    def setup(self) -> None:
        """Builds the layers; weights are normal with variance 1 / fan-in, biases 0.

        The paper does not say how the network starts.
        """
        self.lookup_layout = lookup_layout(
            self.model_config["world"], bool(self.model_config.get("since_column", False))
        )
        sizes = shapes(self.lookup_layout, int(self.model_config["hidden"]))
        rng = generator(int(self.model_config["seed"]), Purpose.INIT)
        self.hidden_weight = _normal(rng, *sizes["hidden_weight"])
        self.hidden_bias = torch.nn.Parameter(torch.zeros(sizes["hidden_bias"]))
        self.head_weight = _normal(rng, *sizes["head_weight"])
        self.head_bias = torch.nn.Parameter(torch.zeros(sizes["head_bias"]))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, float32 ``(rows, actions)``, of the states under ``Columns.OBS``."""
        lookups = torch.from_numpy(self.lookup_layout.lookups(batch[Columns.OBS].numpy()))
        first = LookupLinear.apply(
            self.hidden_weight, self.hidden_bias, lookups, self.lookup_layout
        )
        logits = Linear.apply(torch.relu(first), self.head_weight, self.head_bias)
        return {Columns.ACTION_DIST_INPUTS: logits}


def _normal(rng: np.random.Generator, rows: int, columns: int) -> torch.nn.Parameter:
    weights = rng.normal(0.0, rows**-0.5, (rows, columns)).astype(np.float32)
    return torch.nn.Parameter(torch.from_numpy(weights))
