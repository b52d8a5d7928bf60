"""The set scorer in DeepRM's world: from states to actions in one compiled call.

A decision of a few episodes is little work, and to go from one compiled function to the next by way
of NumPy would take longer than all of it.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.compiled import njit
from cluster_env.core.world import Features
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.features import (
    IDLE_PATIENCE,
    write_allowed,
    write_context,
    write_slots,
)
from cluster_env.worlds.deeprm.state import StateShape
from rllib_configs.networks.sampling import Draws, sample_actions
from rllib_configs.networks.set_scorer.kernels import Floats, Kept, Records, score_rows
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.sampler import open_logits, room_of_a_row


class DeepRMFastPath:
    """See `rllib_configs.config.registries.FAST_PATHS`."""

    def __init__(self, network: SetScorer, packed: Records, world: DeepRM) -> None:
        self._space = world.state_space
        self._scorer = (
            world.layout.shape,
            world.switches.try_last_start,
            packed,
            room_of_a_row(packed, world),
        )

    def logits(self, states: NDArray[np.uint8]) -> Floats:
        """See `rllib_configs.networks.sampling.Sampler`."""
        return _logits(self._checked(states), *self._scorer)

    def sample(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> Draws:
        """See `rllib_configs.networks.sampling.Sampler`."""
        return _sample(self._checked(states), uniforms, *self._scorer)

    def _checked(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The states as an array of the one type that the kernels are compiled for."""
        require_states(states, self._space)
        return states if states.flags.carray else states.copy()


@njit(cache=True, nogil=True)
def _sample(
    states: NDArray[np.uint8],
    uniforms: NDArray[np.float64],
    shape: StateShape,
    try_last_start: bool,
    packed: Records,
    room: Kept,
) -> Draws:
    """Draws actions; arguments as those of `sample_actions` and `_logits`."""
    return sample_actions(_logits(states, shape, try_last_start, packed, room), uniforms)


@njit(cache=True, nogil=True)
def _logits(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    packed: Records,
    room: Kept,
) -> Floats:
    """Computes logits under the mask ``live``; where one action is left, without the network.

    Args:
        states: uint8 ``(n, state_size)``.
        shape: of the states.
        try_last_start: the rule of that name of the world that is acted in.
        packed: weights, see `pack`.
        room: for one row, likewise.

    Returns:
        Float32 ``(n, num_actions)``.
    """
    weights = packed[0]
    num_rows, num_slots = states.shape[0], shape.num_slots
    allowed = np.empty((num_rows, num_slots + 1), np.bool_)
    slots = np.empty((1, num_slots, weights.job.shape[0]), np.float32)
    context = np.empty((1, weights.context.shape[0]), np.float32)
    pooled = np.empty((1, weights.void.shape[0]), np.float32)
    logits = np.empty((num_rows, num_slots + 1), np.float32)
    write_allowed(states, shape, try_last_start, 0, IDLE_PATIENCE, allowed)
    for i in range(num_rows):
        # Two thirds of all states leave no choice: what a network would see of them is not needed.
        if open_logits(allowed[i], logits[i]):
            state = states[i : i + 1]
            write_slots(state, shape, try_last_start, slots)
            write_context(state, shape, context)
            features = Features(slots, context, allowed[i : i + 1])
            score_rows(packed, features, room, False, logits[i : i + 1], pooled)
    return logits
