"""Compiled choice among the jobs that can start now."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit


@njit(cache=True)
def starts_now(state: NDArray[np.uint8], place: int, capacity: NDArray[np.int32]) -> bool:
    """Whether the job at a place of a state fits from the present step to its end."""
    resources = capacity.size
    for step in range(state[place]):
        for r in range(resources):
            if state[step * resources + r] + state[place + 1 + r] > capacity[r]:
                return False
    return True


@njit(cache=True, nogil=True)
def best_startable(
    states: NDArray[np.uint8],
    capacity: NDArray[np.int32],
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
        capacity: int32 ``(num_resources,)``.
        num_slots: number of slots; also the void action.
        slots_at: place of the slots in a state.
        since_at: place of the time steps since the last arrival in a state.
        knob: see `cluster_env.worlds.deeprm.heuristics.ScorePolicy`.
        patience: see there.
        long_job: see there.
        actions: int32 ``(n,)``, written.
    """
    resources = capacity.size
    for i in range(states.shape[0]):
        state = states[i]
        best = -np.inf
        actions[i] = num_slots
        for slot in range(num_slots):
            place = slots_at + slot * (1 + resources)
            duration = state[place]
            if duration == 0 or (duration > long_job and state[since_at] < patience):
                continue
            if not starts_now(state, place, capacity):
                continue
            alignment = 0.0
            for r in range(resources):
                alignment += (capacity[r] - state[r]) * state[place + 1 + r]
            score = knob * alignment + (1.0 - knob) / duration
            if score > best:
                best = score
                actions[i] = slot
