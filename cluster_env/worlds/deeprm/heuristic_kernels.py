"""Compiled choice among the jobs that can start now."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.fitting import first_start


@njit(cache=True, nogil=True)
def best_startable(
    states: NDArray[np.uint8],
    capacity: NDArray[np.int64],
    num_slots: int,
    slots_at: int,
    since_at: int,
    knob: float,
    patience: int,
    long_job: int,
    actions: NDArray[np.int32],
) -> None:
    """Writes, for each state, the slot of highest score that can start now, or void.

    Args:
        states: uint8 ``(n, state_size)``.
        capacity: int64 ``(num_resources,)``.
        num_slots: number of slots; also the void action.
        slots_at: place of the slots in a state.
        since_at: place of the time steps since the last arrival in a state.
        knob: see `cluster_env.worlds.deeprm.heuristics.ScorePolicy`.
        patience: see there.
        long_job: see there.
        actions: int32 ``(n,)``, written.
    """
    resources = capacity.size
    # Strictly better only, in the order of the slots: the lowest slot wins ties, as in the released
    # code. The score is rounded as there, too: (1 - knob) / duration has other last bits than
    # (1 - knob) * (1 / duration), so that other jobs would tie.
    for i in range(states.shape[0]):
        state = states[i]
        best = -np.inf
        actions[i] = num_slots
        for slot in range(num_slots):
            place = slots_at + slot * (1 + resources)
            duration = state[place]
            if duration == 0 or (duration > long_job and state[since_at] < patience):
                continue
            if first_start(state, place, capacity, 0) < 0:
                continue
            alignment = 0.0
            for r in range(resources):
                alignment += (capacity[r] - state[r]) * state[place + 1 + r]
            score = knob * alignment + (1.0 - knob) * (1.0 / duration)
            if score > best:
                best = score
                actions[i] = slot
