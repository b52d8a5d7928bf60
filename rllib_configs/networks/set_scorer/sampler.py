"""Acts with a slot scorer: from states to actions in one compiled call.

A decision of a few episodes is little work, and to go from one compiled function to the next by way
of NumPy would take longer than all of it.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.arrays import require_states
from cluster_env.worlds.deeprm.features import describe, describe_window
from cluster_env.worlds.deeprm.masks import IDLE_PATIENCE, mark_live
from cluster_env.worlds.deeprm.state import StateShape
from rllib_configs.learning.losses import symexp
from rllib_configs.networks.sampling import sample_actions
from rllib_configs.networks.set_scorer.autograd import FORBIDDEN, pack
from rllib_configs.networks.set_scorer.kernels import (
    Floats,
    Records,
    entry_type,
    row_type,
    score_rows,
)
from rllib_configs.networks.set_scorer.network import SetScorer

_PIECE = 1024  # rows; four times as many take three times as long each


class SetScorerSampler:
    """Samples actions from a `SetScorer`; a snapshot of the weights.

    Args:
        network: takes the weights.
        weights: by name, as the RLModule has them.
    """

    def __init__(self, network: SetScorer, weights: dict[str, NDArray[np.float32]]) -> None:
        self._network = network.eval()
        state = {
            name.removeprefix("network."): torch.from_numpy(np.array(value))
            for name, value in weights.items()
        }
        self._network.load_state_dict(state)
        with torch.no_grad():
            packed = pack([value.numpy() for value in network.compiled_parameters()])
        width = packed["void"].shape[1]
        types = (np.empty(0, row_type(width)), np.empty(0, entry_type(width)))
        self._scorer = (network.layout.shape, network.shows_window, packed, *types)

    def logits(self, states: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `Sampler`; the network is asked only where there is more than one thing to do."""
        logits: NDArray[np.float32] = _open_logits(self._checked(states), *self._scorer)
        return logits

    def values(self, states: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Values, float64 ``(n,)``, computed in pieces that fit a cache."""
        values = np.empty(states.shape[0])
        with torch.inference_mode():
            for first in range(0, states.shape[0], _PIECE):
                piece = slice(first, first + _PIECE)
                values[piece] = symexp(self._network.value_of(states[piece])).numpy()
        return values * self._network.critic_scale.numpy()

    def sample(
        self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Sampler`."""
        drawn: tuple[NDArray[np.int32], NDArray[np.float32]]
        drawn = _sample(self._checked(states), uniforms, *self._scorer)
        return drawn

    def _checked(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The states as an array of the one type that the kernels are compiled for."""
        require_states(states, self._network.layout)
        return states if states.flags.carray else states.copy()


@njit(cache=True, nogil=True)
def _sample(
    states: NDArray[np.uint8],
    uniforms: NDArray[np.float64],
    shape: StateShape,
    shows_window: bool,
    packed: Records,
    row: Records,
    entry: Records,
) -> tuple[NDArray[np.int32], Floats]:
    """Draws actions; arguments as those of `sample_actions` and `_open_logits`."""
    logits = _open_logits(states, shape, shows_window, packed, row, entry)
    return sample_actions(logits, uniforms)


@njit(cache=True, nogil=True)
def _open_logits(
    states: NDArray[np.uint8],
    shape: StateShape,
    shows_window: bool,
    packed: Records,
    row: Records,
    entry: Records,
) -> Floats:
    """Computes logits under `live_mask`, those of the only action of a row without the network.

    Args:
        states: uint8 ``(n, state_size)``.
        shape: of the states.
        shows_window: see `SetScorer`.
        packed: see `pack`.
        row: `row_type` ``(0,)``, which says what room to work in is made of.
        entry: `entry_type` ``(0,)``, as well.

    Returns:
        Float32 ``(n, num_actions)``.
    """
    weights = packed[0]
    num_rows, num_slots = states.shape[0], shape.num_slots
    allowed = np.empty((num_rows, num_slots + 1), np.bool_)
    slots = np.empty((1, num_slots, weights.job.shape[0]), np.float32)
    context = np.empty((1, weights.context.shape[0]), np.float32)
    first, slot = np.empty(2, np.int64), np.empty(num_slots, np.int64)
    rows, entries = np.empty(1, row.dtype), np.empty(num_slots, entry.dtype)
    pooled = np.empty((1, weights.void.shape[0]), np.float32)
    logits = np.empty((num_rows, num_slots + 1), np.float32)
    mark_live(states, shape, True, IDLE_PATIENCE, allowed)
    for i in range(num_rows):
        state, may, out = states[i : i + 1], allowed[i : i + 1], logits[i : i + 1]
        for action in range(num_slots + 1):
            out[0, action] = 0.0 if may[0, action] else FORBIDDEN
        if may.sum() > 1:
            describe(state, shape, True, slots, context)
            if shows_window:
                describe_window(state, shape, context)
            score_rows(packed, slots, context, may, False, first, slot, rows, entries, out, pooled)
    return logits
