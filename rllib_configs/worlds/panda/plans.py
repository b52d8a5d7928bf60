"""Plans that the supervisor proposes to agents, for networks: what they see of them, and decide."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.panda.features import PAIR, START, Proposals, proposals, write_seen
from cluster_env.worlds.panda.state import NODE_SEEN, NODE_SIZE, NODES_AT, PLANS

__all__ = ["PAIR", "START", "Proposals", "decide_by_plans", "proposals"]

NEED, NEEDS = 1000.0, 1_000_000.0
"""How finely scores are told apart as needs, and the largest need; below 2**24, for float32."""


@njit_kernel
def decide_by_plans(
    states: NDArray[np.int32],
    which: NDArray[np.int64],
    thetas: NDArray[np.float64],
    observed: int,
    held: int,
    bias: float,
    pair: NDArray[np.float64],
    bits: NDArray[np.int32],
) -> None:
    """Takes each agent's best plan, if its score is above a bias; see `meta.panda.plans.PlanShape`.

    Args:
        states: int32 ``(n, state_size)``.
        which: int64 ``(n,)``, the actor of each.
        thetas: float64 ``(actors, len(PAIR))``.
        observed: places of nodes that may be caught; those that may be released follow.
        held: how many follow.
        bias: what a score has to be above.
        pair: room, ``(len(PAIR),)``.
        bits: written, int32 ``(n, observed + held + 1)``: 0, or 1 plus the need.
    """
    bits[:] = 0
    for i in range(states.shape[0]):
        state, theta, best, most = states[i], thetas[which[i]], -1, -np.inf
        # The plan with the highest score.
        for p in range(len(PLANS)):
            if not write_seen(state, p, pair):
                continue
            score = -bias
            for k in range(pair.size):
                score += theta[k] * pair[k]
            if score > most:
                most, best = score, p
        if most > 0.0:
            # Its nodes are caught, the more urgently the higher it scores.
            need = 1 + np.int32(min(NEED * most, NEEDS))
            for k in range(observed):
                if (state[NODES_AT + k * NODE_SIZE + NODE_SEEN.plans] >> best) & 1:
                    bits[i, k] = need
        else:
            # No plan is worth it: the agent waits, and releases what it holds.
            bits[i, observed + held] = 1
            for k in range(observed, observed + held):
                bits[i, k] = state[NODES_AT + k * NODE_SIZE + NODE_SEEN.present] > 0
