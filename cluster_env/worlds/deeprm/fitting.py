"""Compiled questions about the jobs in the slots of one state."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit


@njit(cache=True, inline="always")
def last_start(duration: int, horizon: int, try_last_start: bool) -> int:
    """Latest start in the horizon that the rules allow; negative if there is none.

    Args:
        duration: time steps that the job lasts.
        horizon: time steps that the cluster books ahead.
        try_last_start: see `cluster_env.worlds.deeprm.rules.Rules`.
    """
    return horizon - duration if try_last_start else horizon - duration - 1


@njit(cache=True, inline="always")
def first_start(
    state: NDArray[np.uint8],
    place: int,
    capacity: NDArray[np.int64],
    last: int,
) -> int:
    """First of the steps 0 to `last` from which the job at a place of a state fits to its end.

    Args:
        state: uint8 ``(state_size,)``.
        place: where the job's duration stands in it.
        capacity: int64 ``(num_resources,)``.
        last: latest start that counts, in steps from now; see `last_start`.

    Returns:
        Steps from now, or -1 if there is no job or no room for it.
    """
    resources = capacity.size
    duration = np.int64(state[place])
    if duration == 0:
        return -1
    # One walk over the steps: a step that is too full moves the candidate start behind it, so that
    # no step is looked at twice, whatever the durations are.
    first = 0
    step = 0
    while first <= last:
        fits = True
        for r in range(resources):
            if np.int64(state[step * resources + r]) + state[place + 1 + r] > capacity[r]:
                fits = False
        step += 1
        if not fits:
            first = step
        elif step - first == duration:
            return first
    return -1


@njit(cache=True, inline="always")
def first_free(
    state: NDArray[np.uint8], place: int, capacity: NDArray[np.int64], horizon: int
) -> int:
    """First step from which the job at a place of a state fits, whether it can be booked or not.

    Behind the horizon nothing runs, so it is at most that.

    Args:
        state: uint8 ``(state_size,)``.
        place: where the job's duration stands in it.
        capacity: int64 ``(num_resources,)``.
        horizon: time steps that a state shows.
    """
    resources = capacity.size
    first = 0
    for step in range(horizon):
        if step - first == np.int64(state[place]):
            break
        for r in range(resources):
            used = np.int64(state[step * resources + r])
            if used > capacity[r] - state[place + 1 + r]:
                first = step + 1
    return first
