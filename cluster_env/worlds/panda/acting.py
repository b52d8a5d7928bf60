"""Rules that each agent follows by itself, by what it sees."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.panda.arrays import NODE_SEEN, NODES_AT
from cluster_env.worlds.panda.picking import Offer, pick

_AT, _SIZE = NODES_AT, len(NODE_SEEN)
_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit_kernel
def act_rows(
    states: NDArray[np.int32],
    how: int,
    observed: int,
    held: int,
    offer: Offer,
    keys: NDArray[np.float64],
    bits: NDArray[np.int8],
) -> None:
    """Decides as an agent that knows its state alone.

    It catches what it picks among the nodes that it sees for what it is missing, and starts as soon
    as it can. Where they are not enough, it releases what it holds.

    Args:
        states: int32 ``(n, state_size)``.
        how: see `pick`.
        observed: nodes that a state shows.
        held: nodes that an agent may hold.
        offer: room.
        keys: uniform numbers, float64 ``(n,)``.
        bits: written, int8 ``(n, observed + held + 1)``.
    """
    bits[:] = 0
    for i in range(states.shape[0]):
        state, count = states[i], 0
        if state[15]:
            continue
        for k in range(observed):
            seen = state[_AT + k * _SIZE : _AT + (k + 1) * _SIZE]
            if seen[0]:
                offer.cores[count], offer.memory[count] = seen[1], seen[2]
                offer.speed[count], offer.node[count] = seen[3], k
                count += 1
        key = np.uint64(keys[i] * 2.0**53)
        missing, room = state[2] - state[6], held - state[8]
        picked = pick(offer, count, missing, state[3] - state[7], room, how, key * _MIX)
        for k in range(picked):
            bits[i, offer.node[offer.picked[k]]] = 1
        if picked == 0:
            bits[i, observed : observed + state[8]] = 1
