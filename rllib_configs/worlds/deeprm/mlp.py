"""DeepRM's policy network (section 4.1), reading states instead of images.

The image consists of blocks whose rows are filled from the left, so the product of a row with a
dense weight is a prefix sum of the weight: 61 look-ups of a hidden vector do the work of 4,460
multiplications with it, and give the same numbers up to rounding.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.errors import InputError
from cluster_env.core.world import World
from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.linear import linear
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.networks.sampling import Sampler, TensorForm
from rllib_configs.worlds.deeprm.lookups import LookupLayout


@njit(cache=True, nogil=True)
def lookup_sum(
    table: NDArray[np.float32], bias: NDArray[np.float32], lookups: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Sums the looked-up entries of each row, and the bias.

    Args:
        table: float32 ``(num_entries, width)``.
        bias: float32 ``(width,)``.
        lookups: int32 ``(rows, num_lookups)``.

    Returns:
        float32 ``(rows, width)``.
    """
    width = table.shape[1]
    out = np.empty((lookups.shape[0], width), np.float32)
    for row in range(lookups.shape[0]):
        for unit in range(width):
            out[row, unit] = bias[unit]
        for k in range(lookups.shape[1]):
            entry = lookups[row, k]
            for unit in range(width):
                out[row, unit] += table[entry, unit]
    return out


def shapes(layout: LookupLayout, hidden: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights by name, with so many hidden units."""
    num_actions = layout.layout.cluster.num_actions
    return {
        "hidden_weight": (layout.num_inputs, hidden),
        "hidden_bias": (hidden,),
        "head_weight": (hidden, num_actions),
        "head_bias": (num_actions,),
    }


class DeepRMSampler(Sampler):
    """Samples actions from DeepRM's network; a snapshot of the weights."""

    by_row = True

    def __init__(self, layout: LookupLayout, weights: dict[str, NDArray[np.float32]]) -> None:
        self._layout = layout
        self._hidden_weight = weights["hidden_weight"].copy()
        self._table = layout.prefix_table(self._hidden_weight)
        self._hidden_bias = weights["hidden_bias"].copy()
        self._head_weight = weights["head_weight"].copy()
        self._head_bias = weights["head_bias"].copy()

    def logits(self, states: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Logits, float32 ``(n, num_actions)``, of states, uint8 ``(n, state_size)``."""
        hidden = lookup_sum(self._table, self._hidden_bias, self._layout.lookups(states))
        return linear(np.maximum(hidden, 0, out=hidden), self._head_weight, self._head_bias)

    def tensor_form(self) -> TensorForm:
        """See `TensorForm`; its input is the image row by row, then the released last column."""
        from torch import from_numpy, nn, zeros  # takes seconds, and nothing else here needs it

        rows, hidden = self._hidden_weight.shape
        module = nn.Sequential(
            nn.Linear(rows, hidden), nn.ReLU(), nn.Linear(hidden, self._head_bias.size)
        )
        module.load_state_dict(
            {
                "0.weight": from_numpy(self._hidden_weight.T),
                "0.bias": from_numpy(self._hidden_bias),
                "2.weight": from_numpy(self._head_weight.T),
                "2.bias": from_numpy(self._head_bias),
            }
        )
        return TensorForm(
            module.eval(),
            {"image": zeros(2, rows)},
            {"image": (0,)},
            lambda states: {"image": self._layout.cells(states)},
            {},
        )


class DeepRMNetwork(Network):
    """DeepRM's network, on the cluster alone that it was trained for."""

    module_place = "rllib_configs.worlds.deeprm.module:DeepRMModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """World, hidden units, whether there is a last column, and seed."""
        return {
            "world": _require_deeprm(world),
            "hidden": experiment.training.hidden,
            "since_column": experiment.training.since_column,
            "seed": experiment.seed,
        }

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> DeepRMSampler:
        """See `DeepRMSampler`."""
        layout = LookupLayout(_require_deeprm(world).layout, experiment.training.since_column)
        return DeepRMSampler(layout, dict(weights))

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """See `shapes`.

        Raises:
            InputError: if the world has another cluster.
        """
        training = experiment.training
        acting, trained = _require_deeprm(world), _require_deeprm(experiment.task.world)
        if acting.cluster != trained.cluster:
            raise InputError(
                "a policy of DeepRM's network can be used on the cluster alone that it was trained "
                "for"
            )
        return shapes(LookupLayout(acting.layout, training.since_column), training.hidden)


def _require_deeprm(world: World) -> DeepRM:
    return require_kind(world, DeepRM, "the network deeprm_mlp reads states", "set_scorer")


NETWORK = DeepRMNetwork()
