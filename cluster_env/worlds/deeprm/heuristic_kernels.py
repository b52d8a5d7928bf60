"""Compiled choices among the jobs that can start now."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.fitting import first_free, first_start


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


@njit(cache=True, nogil=True)
def first_come(
    states: NDArray[np.uint8],
    capacity: NDArray[np.int64],
    horizon: int,
    num_slots: int,
    slots_at: int,
    waited_at: int,
    backfills: bool,
    actions: NDArray[np.int32],
) -> None:
    """Writes, for each state, the slot of the job that arrived first, if it can start now.

    If it cannot, void; or with `backfills` the slot of the next one that can start now without
    that the first one starts later. The lowest slot wins among jobs that arrived at one instant.

    Args:
        states: uint8 ``(n, state_size)``.
        capacity: int64 ``(num_resources,)``.
        horizon: time steps that a state shows.
        num_slots: number of slots; also the void action.
        slots_at: place of the slots in a state.
        waited_at: place of the times since the arrivals in a state.
        backfills: whether jobs may overtake the first one.
        actions: int32 ``(n,)``, written.
    """
    size = 1 + capacity.size
    for i in range(states.shape[0]):
        state = states[i]
        actions[i] = num_slots
        head = -1
        for slot in range(num_slots):
            if state[slots_at + slot * size] == 0:
                continue
            if head < 0 or state[waited_at + slot] > state[waited_at + head]:
                head = slot
        if head < 0:
            continue
        place = slots_at + head * size
        if first_start(state, place, capacity, 0) == 0:
            actions[i] = head
            continue
        if not backfills:
            continue
        reserved = first_free(state, place, capacity, horizon)
        longest = -1
        for slot in range(num_slots):
            if slot == head or state[waited_at + slot] <= longest:
                continue
            if _fits_beside(state, slots_at + slot * size, place, reserved, capacity):
                longest = int(state[waited_at + slot])
                actions[i] = slot


@njit(cache=True, inline="always")
def _fits_beside(
    state: NDArray[np.uint8],
    place: int,
    reserved_place: int,
    reserved: int,
    capacity: NDArray[np.int64],
) -> bool:
    """Whether a job can run from now on, although another one begins at the step `reserved`."""
    resources = capacity.size
    duration, other = np.int64(state[place]), np.int64(state[reserved_place])
    for step in range(duration):
        for r in range(resources):
            used = np.int64(state[step * resources + r]) + state[place + 1 + r]
            if reserved <= step < reserved + other:
                used += state[reserved_place + 1 + r]
            if used > capacity[r]:
                return False
    return bool(duration > 0)
