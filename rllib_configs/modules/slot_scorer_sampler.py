"""Acts with a slot scorer: from codes to actions in one compiled call.

A decision of a few episodes is little work, and to go from one compiled function to the next by way
of NumPy would take longer than all of it.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.observations.arrays import require_codes
from cluster_env.observations.masks import IDLE_PATIENCE, mark_live
from cluster_env.observations.slots import describe, describe_window
from cluster_env.simulators.code import CodeShape
from rllib_configs.learning.losses import symexp
from rllib_configs.modules.sampling import sample_actions
from rllib_configs.modules.slot_scorer import SlotScorer
from rllib_configs.modules.slot_scorer_compiled import FORBIDDEN, pack
from rllib_configs.modules.slot_scorer_kernels import (
    Floats,
    Records,
    entry_type,
    row_type,
    score_rows,
)

_PIECE = 1024  # rows; four times as many take three times as long each


class SlotScorerSampler:
    """Samples actions from a `SlotScorer`; a snapshot of the weights.

    Args:
        network: takes the weights.
        weights: by name, as the RLModule has them.
    """

    def __init__(self, network: SlotScorer, weights: dict[str, NDArray[np.float32]]) -> None:
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

    def logits(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `Sampler`; the network is asked only where there is more than one thing to do."""
        logits: NDArray[np.float32] = _open_logits(self._checked(codes), *self._scorer)
        return logits

    def values(self, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Values, float64 ``(n,)``, computed in pieces that fit a cache."""
        values = np.empty(codes.shape[0])
        with torch.inference_mode():
            for first in range(0, codes.shape[0], _PIECE):
                piece = slice(first, first + _PIECE)
                values[piece] = symexp(self._network.value_of(codes[piece])).numpy()
        return values * self._network.critic_scale.numpy()

    def sample(
        self, codes: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Sampler`."""
        drawn: tuple[NDArray[np.int32], NDArray[np.float32]]
        drawn = _sample(self._checked(codes), uniforms, *self._scorer)
        return drawn

    def _checked(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The codes as an array of the one type that the kernels are compiled for."""
        require_codes(codes, self._network.layout)
        return codes if codes.flags.carray else codes.copy()


@njit(cache=True, nogil=True)
def _sample(
    codes: NDArray[np.uint8],
    uniforms: NDArray[np.float64],
    shape: CodeShape,
    shows_window: bool,
    packed: Records,
    row: Records,
    entry: Records,
) -> tuple[NDArray[np.int32], Floats]:
    """Draws actions; arguments as those of `sample_actions` and `_open_logits`."""
    logits = _open_logits(codes, shape, shows_window, packed, row, entry)
    return sample_actions(logits, uniforms)


@njit(cache=True, nogil=True)
def _open_logits(
    codes: NDArray[np.uint8],
    shape: CodeShape,
    shows_window: bool,
    packed: Records,
    row: Records,
    entry: Records,
) -> Floats:
    """Computes logits under `live_mask`, those of the only action of a row without the network.

    Args:
        codes: uint8 ``(n, code_size)``.
        shape: of the codes.
        shows_window: see `SlotScorer`.
        packed: see `pack`.
        row: `row_type` ``(0,)``, which says what room to work in is made of.
        entry: `entry_type` ``(0,)``, as well.

    Returns:
        Float32 ``(n, num_actions)``.
    """
    weights = packed[0]
    num_rows, num_slots = codes.shape[0], shape.num_slots
    allowed = np.empty((num_rows, num_slots + 1), np.bool_)
    slots = np.empty((1, num_slots, weights.job.shape[0]), np.float32)
    context = np.empty((1, weights.context.shape[0]), np.float32)
    first, slot = np.empty(2, np.int64), np.empty(num_slots, np.int64)
    rows, entries = np.empty(1, row.dtype), np.empty(num_slots, entry.dtype)
    pooled = np.empty((1, weights.void.shape[0]), np.float32)
    logits = np.empty((num_rows, num_slots + 1), np.float32)
    mark_live(codes, shape, True, IDLE_PATIENCE, allowed)
    for i in range(num_rows):
        code, may, out = codes[i : i + 1], allowed[i : i + 1], logits[i : i + 1]
        for action in range(num_slots + 1):
            out[0, action] = 0.0 if may[0, action] else FORBIDDEN
        if may.sum() > 1:
            describe(code, shape, True, slots, context)
            if shows_window:
                describe_window(code, shape, context)
            score_rows(packed, slots, context, may, False, first, slot, rows, entries, out, pooled)
    return logits
