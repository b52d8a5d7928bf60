"""Agents that weigh the plans which the supervisor proposes: their decisions, compiled."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.panda.features import PAIR, write_seen
from cluster_env.worlds.panda.state import NODE_SEEN, NODE_SIZE, NODES_AT, PLANS
from cluster_env.worlds.panda.world import Panda

NEED, NEEDS = 1000.0, 1_000_000.0
"""How finely scores are distinguished as needs, and the largest need; below 2**24, for float32."""


def decide_by_plans(
    world: Panda,
    states: NDArray[np.int32],
    actor: NDArray[np.int64],
    weights: NDArray[np.float64],
    bias: float = 0.0,
) -> NDArray[np.int32]:
    """Takes each agent's best plan, if its score is above a bias (`meta.panda.actors.PlanShape`).

    Args:
        world: whose states they are.
        states: int32 ``(n, state_size)``.
        actor: int64 ``(n,)``, the actor of each.
        weights: float64 ``(actors, len(PAIR))``.
        bias: what a score has to be above.

    Returns:
        Actions, int32 ``(n, num_actions)``: 0, or 1 plus the need.
    """
    actions = np.empty((len(states), world.num_actions), np.int32)
    _decide(
        np.ascontiguousarray(states),
        actor,
        weights,
        world.observed,
        world.held,
        bias,
        np.empty(len(PAIR)),
        actions,
    )
    return actions


@njit_kernel
def _decide(
    states: NDArray[np.int32],
    actor: NDArray[np.int64],
    weights: NDArray[np.float64],
    observed: int,
    held: int,
    bias: float,
    pair: NDArray[np.float64],
    actions: NDArray[np.int32],
) -> None:
    """See `decide_by_plans`; ``observed`` nodes come first in an action, then ``held`` ones."""
    actions[:] = 0
    for row in range(states.shape[0]):
        state, actor_weights, best, most = states[row], weights[actor[row]], -1, -np.inf
        # Score each plan that there is.
        for plan in range(len(PLANS)):
            if not write_seen(state, plan, pair):
                continue
            score = -bias
            for k in range(pair.size):
                score += actor_weights[k] * pair[k]
            if score > most:
                most, best = score, plan
        if most > 0.0:
            # Catch the nodes of the best one, as urgently as its score is high.
            need = 1 + np.int32(min(NEED * most, NEEDS))
            for k in range(observed):
                if (state[NODES_AT + k * NODE_SIZE + NODE_SEEN.plans] >> best) & 1:
                    actions[row, k] = need
        else:
            # Wait, and release what is held: no plan is worth it.
            actions[row, observed + held] = 1
            for k in range(observed, observed + held):
                actions[row, k] = state[NODES_AT + k * NODE_SIZE + NODE_SEEN.present] > 0
