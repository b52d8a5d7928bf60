"""Compiled choice among the jobs that can start now."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit


@njit(cache=True)
def starts_now(code: NDArray[np.uint8], place: int, capacity: NDArray[np.int32]) -> bool:
    """Whether the job at a place of a code fits from the present step to its end."""
    resources = capacity.size
    for step in range(code[place]):
        for r in range(resources):
            if code[step * resources + r] + code[place + 1 + r] > capacity[r]:
                return False
    return True


@njit(cache=True, nogil=True)
def best_startable(
    codes: NDArray[np.uint8],
    capacity: NDArray[np.int32],
    num_slots: int,
    slots_at: int,
    since_at: int,
    knob: float,
    patience: int,
    long_job: int,
    actions: NDArray[np.int32],
) -> None:
    """Writes, for each code, the slot of highest score that can start now, or void.

    Args:
        codes: uint8 ``(n, code_size)``.
        capacity: int32 ``(num_resources,)``.
        num_slots: number of slots; also the void action.
        slots_at: place of the slots in a code.
        since_at: place of the time steps since the last arrival in a code.
        knob: see `cluster_env.heuristics.policies.ScorePolicy`.
        patience: see there.
        long_job: see there.
        actions: int32 ``(n,)``, written.
    """
    resources = capacity.size
    for i in range(codes.shape[0]):
        code = codes[i]
        best = -np.inf
        actions[i] = num_slots
        for slot in range(num_slots):
            place = slots_at + slot * (1 + resources)
            duration = code[place]
            if duration == 0 or (duration > long_job and code[since_at] < patience):
                continue
            if not starts_now(code, place, capacity):
                continue
            alignment = 0.0
            for r in range(resources):
                alignment += (capacity[r] - code[r]) * code[place + 1 + r]
            score = knob * alignment + (1.0 - knob) / duration
            if score > best:
                best = score
                actions[i] = slot
