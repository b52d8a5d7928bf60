"""Which nodes a rule picks for a specification."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.core.seeding import uniform

BEST_FIT, FASTEST, RANDOM = range(3)
"""How the next node is picked."""

_NO_FIT = 1e6  # above the excess of any node
_MEMORY = 1.0 / 2**22  # below one core, for any memory
_SPEED = 1e8


class Offer(NamedTuple):
    """Nodes that can be picked from; a rule writes to ``picked``."""

    cores: NDArray[np.int64]  # (most,), as the next four
    memory: NDArray[np.int64]
    speed: NDArray[np.float64]
    node: NDArray[np.int64]  # what to call it; of equal ones, the lowest goes first
    left: NDArray[np.bool_]  # whether it has not been picked
    picked: NDArray[np.int64]  # (most,), places of this offer


@njit_inlined
def pick(
    offer: Offer, count: int, cores: int, memory: int, most: int, how: int, key: np.uint64
) -> int:
    """Picks nodes until they have so many cores and so much memory.

    Best fit: if one node is enough for what is missing, that with the fewest cores beyond it, else
    that with the most cores of use; memory decides between equals. Fastest: the highest speed, and
    of equally fast ones the best fit.

    Args:
        offer: the nodes.
        count: how many.
        cores: that are missing.
        memory: that is missing.
        most: nodes that may be picked.
        how: `BEST_FIT`, `FASTEST` or `RANDOM`.
        key: of the random numbers.

    Returns:
        How many were picked; 0 if they cannot be enough.
    """
    offer.left[:count] = True
    picked = 0
    while cores > 0 or memory > 0:
        if picked == most:
            return 0
        best, least = -1, np.inf
        for k in range(count):
            if not offer.left[k]:
                continue
            if how == RANDOM:
                score = uniform(key, offer.node[k])
            elif offer.cores[k] >= cores and offer.memory[k] >= memory:
                score = offer.cores[k] - cores + _MEMORY * (offer.memory[k] - memory)
            else:
                of_use = min(offer.cores[k], max(cores, 0))
                score = _NO_FIT - of_use - _MEMORY * min(offer.memory[k], max(memory, 0))
            if how == FASTEST:
                score -= _SPEED * offer.speed[k]
            if score < least or (score == least and offer.node[k] < offer.node[best]):
                best, least = k, score
        if best < 0:
            return 0
        offer.left[best] = False
        offer.picked[picked] = best
        picked += 1
        cores -= offer.cores[best]
        memory -= offer.memory[best]
    return picked
