"""What a network sees of a state: nodes to catch, nodes to release, and the specification."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.panda.arrays import NODE_SEEN, NODES_AT

ITEM = (
    *("present", "held", "cores", "memory", "speed", "same_rack", "same_region"),
    *("leaves_soon", "share_of_cores", "best_fit", "fastest_fit"),
)
"""Names of a node's features, all from 0 to 1.

* ``held``: 1 for a node that the agent holds, and may release; ``cores``, ``memory``, ``speed``:
  over the largest of the cloud; ``same_rack``, ``same_region``: as its first held node.
* ``leaves_soon``: 1 / (1 + steps until it leaves), 0 if none is announced; ``share_of_cores``: of
  the demand, at most 1.
* ``best_fit``, ``fastest_fit``: whether an agent would catch or release it that follows this rule
  by itself; so that actors that decide on each node by itself need not find out which are enough.
"""

CONTEXT = (
    *("waited", "left", "cores", "memory", "any_core", "core_type", "one_region", "one_rack"),
    *("held_cores", "held_memory", "free_nodes", "free_cores"),
    *("waiting", "waiting_cores", "running", "ahead", "satisfied"),
)
"""Names of the context's features, all from 0 to 1.

* ``waited``, ``left``: n / (n + 32) steps; ``cores``, ``memory``: of the specification, n over n +
  those of the largest node; ``any_core``: whether every core type will do; ``core_type``: its
  number over their number; ``one_region``, ``one_rack``: where nodes are wanted.
* ``held_cores``, ``held_memory``: share of the demand, at most 1; ``free_nodes``: of all nodes;
  ``free_cores``: of all cores; ``waiting``, ``running``, ``ahead``: agents, n / (n + 8);
  ``waiting_cores``: n / (n + cores of the cloud).
"""

_AT, _SIZE = NODES_AT, len(NODE_SEEN)


@njit(cache=True, nogil=True)
def describe(
    states: NDArray[np.int32],
    observed: int,
    largest: NDArray[np.float64],
    best_fit: NDArray[np.int8],
    fastest_fit: NDArray[np.int8],
    items: NDArray[np.float32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
) -> None:
    """Fills features of states; see `ITEM`, `CONTEXT` and `Panda.features`.

    Args:
        states: int32 ``(n, state_size)``.
        observed: places of nodes that may be caught; those that may be released follow.
        largest: cores, memory and speed (in hundredths) of the largest node of each kind, number of
            core types, of nodes and of cores, float64 ``(6,)``.
        best_fit: what an agent would do by this rule, int8 ``(n, num_actions)``.
        fastest_fit: the same of this rule.
        items: written, as the next two.
        context: see `Features`.
        allowed: see there.
    """
    for i in range(states.shape[0]):
        s, out = states[i], context[i]
        out[0], out[1] = s[0] / (s[0] + 32.0), s[1] / (s[1] + 32.0)
        out[2], out[3] = s[2] / (s[2] + largest[0]), s[3] / (s[3] + largest[1] + 1e-9)
        out[4], out[5] = s[4] == 0, s[4] / largest[3]
        out[6], out[7] = s[5] == 1, s[5] == 2
        out[8], out[9] = min(s[6] / s[2], 1.0), min(s[7] / max(s[3], 1), 1.0)
        out[10], out[11] = s[9] / largest[4], s[10] / largest[5]
        out[12], out[13] = s[11] / (s[11] + 8.0), s[12] / (s[12] + largest[5])
        out[14], out[15], out[16] = s[13] / (s[13] + 8.0), s[14] / (s[14] + 8.0), s[15]
        for k in range(items.shape[1]):
            node, item = s[_AT + k * _SIZE : _AT + (k + 1) * _SIZE], items[i, k]
            allowed[i, k] = node[0] > 0
            item[:] = 0.0
            if not node[0]:
                continue
            item[0], item[1] = 1.0, k >= observed
            item[2], item[3] = node[1] / largest[0], node[2] / max(largest[1], 1.0)
            item[4], item[5], item[6] = node[3] / largest[2], node[4], node[5]
            item[7] = 1.0 / node[6] if node[6] else 0.0
            item[8] = min(node[1] / s[2], 1.0)
            item[9], item[10] = best_fit[i, k], fastest_fit[i, k]
        allowed[i, items.shape[1]] = True
