"""DeepRM's policy network (section 4.1), reading states instead of images."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.networks.linear import linear
from rllib_configs.networks.sampling import sample_actions
from rllib_configs.worlds.deeprm.lookup_sum import lookup_sum
from rllib_configs.worlds.deeprm.lookups import LookupLayout


def lookup_layout(world: DeepRM, since_column: bool) -> LookupLayout:
    """What the network looks up in states of a world."""
    return LookupLayout(world.layout, since_column)


def shapes(layout: LookupLayout, hidden: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights by name, with so many hidden units."""
    num_actions = layout.layout.cluster.num_actions
    return {
        "hidden_weight": (layout.num_inputs, hidden),
        "hidden_bias": (hidden,),
        "head_weight": (hidden, num_actions),
        "head_bias": (num_actions,),
    }


class DeepRMSampler:
    """Samples actions from DeepRM's network; a snapshot of the weights."""

    by_row = True

    def __init__(self, layout: LookupLayout, weights: dict[str, NDArray[np.float32]]) -> None:
        self._layout = layout
        self._table = layout.prefix_table(weights["hidden_weight"])
        self._hidden_bias = weights["hidden_bias"].copy()
        self._head_weight = weights["head_weight"].copy()
        self._head_bias = weights["head_bias"].copy()

    def logits(self, states: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Logits, float32 ``(n, num_actions)``, of states, uint8 ``(n, state_size)``."""
        hidden = lookup_sum(self._table, self._hidden_bias, self._layout.lookups(states))
        return linear(np.maximum(hidden, 0, out=hidden), self._head_weight, self._head_bias)

    def sample(
        self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `rllib_configs.networks.sampling.SamplingPolicy`."""
        return sample_actions(self.logits(states), uniforms)
