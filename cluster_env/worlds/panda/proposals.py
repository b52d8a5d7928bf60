"""What a network sees of the plans that a state has."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.panda.arrays import HEADER, NODE_SEEN, NODES_AT, PLAN_SEEN, PLANS
from cluster_env.worlds.panda.scoring import PAIR, write_pair

_AT, _SIZE, _PLANS_AT, _PLAN_SIZE = NODES_AT, len(NODE_SEEN), len(HEADER), len(PLAN_SEEN)


class Proposals(NamedTuple):
    """Plans of agents, see `arrays.PLANS`."""

    pairs: NDArray[np.float32]  # (n, plans, pair features), see `scoring.PAIR`; 0 without a plan
    members: NDArray[np.bool_]  # (n, plans, observed + held): nodes that are to be caught
    possible: NDArray[np.bool_]  # (n, plans): whether there is one


def proposals(states: NDArray[np.int32], num_items: int) -> Proposals:
    """The plans of states.

    Args:
        states: int32 ``(n, state_size)``.
        num_items: places of nodes, observed and held.
    """
    n, plans = states.shape[0], len(PLANS)
    found = Proposals(
        np.zeros((n, plans, len(PAIR)), np.float32),
        np.zeros((n, plans, num_items), np.bool_),
        np.zeros((n, plans), np.bool_),
    )
    _fill(np.ascontiguousarray(states), *found)
    return found


@njit_inlined
def write_seen(state: NDArray[np.int32], which: int, out: NDArray[np.floating[Any]]) -> bool:
    """Writes the features of a plan that a state shows, if there is one; whether there is.

    Args:
        state: int32 ``(state_size,)``.
        which: of the `arrays.PLANS`.
        out: ``(len(PAIR),)``, see `scoring.PAIR`.
    """
    plan = state[_PLANS_AT + which * _PLAN_SIZE : _PLANS_AT + (which + 1) * _PLAN_SIZE]
    if plan[0]:
        write_pair(
            *(np.float64(state[1]), state[2], state[0], state[5], state[4] > 0, state[11]),
            *(np.float64(state[16]), plan[0], plan[1], np.float64(plan[2]), plan[3]),
            *(plan[4] / 100.0, out),
        )
    return plan[0] > 0


@njit_kernel
def _fill(
    states: NDArray[np.int32],
    pairs: NDArray[np.float32],
    members: NDArray[np.bool_],
    possible: NDArray[np.bool_],
) -> None:
    for i in range(states.shape[0]):
        for p in range(pairs.shape[1]):
            possible[i, p] = write_seen(states[i], p, pairs[i, p])
            for k in range(members.shape[2] if possible[i, p] else 0):
                members[i, p, k] = (states[i, _AT + k * _SIZE + 7] >> p) & 1
