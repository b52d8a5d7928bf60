"""DeepRM's policy network (section 4.1), reading codes instead of images."""

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.core.cluster import Cluster
from cluster_env.core.seeding import Purpose, generator
from cluster_env.observations.lookups import LookupLayout
from cluster_env.simulators.code import CodeLayout
from rllib_configs.modules.lookup_sum import LookupLinear, lookup_sum
from rllib_configs.modules.sampling import sample_actions


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
            CodeLayout(cluster), bool(self.model_config.get("since_column", False))
        )
        rng = generator(int(self.model_config["seed"]), Purpose.INIT)
        self.hidden_weight = _normal(rng, self.lookup_layout.num_inputs, hidden)
        self.hidden_bias = torch.nn.Parameter(torch.zeros(hidden))
        self.head_weight = _normal(rng, hidden, cluster.num_actions)
        self.head_bias = torch.nn.Parameter(torch.zeros(cluster.num_actions))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Logits, float32 ``(rows, actions)``, of the codes under ``Columns.OBS``."""
        lookups = torch.from_numpy(self.lookup_layout.lookups(batch[Columns.OBS].numpy()))
        first = LookupLinear.apply(
            self.hidden_weight, self.hidden_bias, lookups, self.lookup_layout
        )
        logits = torch.relu(first) @ self.head_weight + self.head_bias
        return {Columns.ACTION_DIST_INPUTS: logits}


class DeepRMSampler:
    """Samples actions from DeepRM's network; a snapshot of the weights."""

    def __init__(self, layout: LookupLayout, weights: dict[str, NDArray[np.float32]]) -> None:
        self._layout = layout
        self._table = layout.prefix_table(weights["hidden_weight"])
        self._hidden_bias = weights["hidden_bias"].copy()
        self._head_weight = weights["head_weight"].copy()
        self._head_bias = weights["head_bias"].copy()

    def logits(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Logits, float32 ``(n, num_actions)``, of codes, uint8 ``(n, code_size)``."""
        hidden = lookup_sum(self._table, self._hidden_bias, self._layout.lookups(codes))
        return _head(hidden, self._head_weight, self._head_bias)

    def sample(
        self, codes: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `rllib_configs.runners.rollout.SamplingPolicy`."""
        return sample_actions(self.logits(codes), uniforms)


def _normal(rng: np.random.Generator, rows: int, columns: int) -> torch.nn.Parameter:
    weights = rng.normal(0.0, rows**-0.5, (rows, columns)).astype(np.float32)
    return torch.nn.Parameter(torch.from_numpy(weights))


@njit(cache=True, nogil=True)
def _head(
    hidden: NDArray[np.float32], weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> NDArray[np.float32]:
    rows, width = hidden.shape
    actions = weight.shape[1]
    out = np.empty((rows, actions), np.float32)
    for row in range(rows):
        for action in range(actions):
            out[row, action] = bias[action]
        for unit in range(width):
            if hidden[row, unit] > 0:
                for action in range(actions):
                    out[row, action] += hidden[row, unit] * weight[unit, action]
    return out
