"""The numbers of a state in a row, as in the released code's compact representation."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.arrays import output, require_states
from cluster_env.worlds.deeprm.state import StateLayout


def compact_size(layout: StateLayout) -> int:
    """Numbers of a compact observation; 71 for the default cluster."""
    return layout.backlog + 1


def compact(
    states: NDArray[np.uint8], layout: StateLayout, out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Lists free units, slots and backlog, unscaled.

    The order is: for each resource, the free units of each coming time step; for each slot,
    duration and demands, 0 if it is empty; the number of jobs in the backlog (255 at most).

    These are the last columns of the released code's compact representation, which begins with
    another `horizon` columns: how many of the placed jobs are still to finish at each step. They
    are left out because they are no function of a state, which keeps units in use but not whose.

    Args:
        states: uint8 ``(n, state_size)``.
        layout: of the states.
        out: written if given, float32 ``(n, compact_size)``.

    Returns:
        float32 ``(n, compact_size)``.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    require_states(states, layout)
    listed: NDArray[np.float32] = output(out, (states.shape[0], compact_size(layout)), np.float32)
    _list(states, layout.shape.capacity, layout.cluster.horizon, listed)
    return listed


@njit(cache=True, nogil=True)
def _list(
    states: NDArray[np.uint8],
    capacity: NDArray[np.int64],
    horizon: int,
    out: NDArray[np.float32],
) -> None:
    resources = capacity.size
    slots_at = horizon * resources
    for i in range(states.shape[0]):
        for r in range(resources):
            for h in range(horizon):
                out[i, r * horizon + h] = capacity[r] - states[i, h * resources + r]
        for k in range(slots_at, out.shape[1]):
            out[i, k] = states[i, k]
