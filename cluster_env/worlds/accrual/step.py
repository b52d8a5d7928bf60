"""Decision by decision."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.accrual.arrays import Costs, Jobs, Machine, Rows
from cluster_env.worlds.accrual.events import begin_episode, has_room, next_instant, settle
from cluster_env.worlds.accrual.offers import offer, show_nothing, take

RESET, STEP, RESUME = range(3)


@njit_kernel
def step_rows(
    m: Machine,
    jobs: Jobs,
    costs: Costs,
    order: int,
    rows: Rows,
    which: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
    mode: int,
) -> int:
    """Takes one decision in some rows, or puts them back to their first one.

    The first decision is at time 0, even if nothing can be chosen.

    Args:
        m: the machine.
        jobs: of all jobsets.
        costs: the objective.
        order: in which waiting jobs start that fit.
        rows: all episodes.
        which: int32 ``(n,)``, rows that decide.
        actions: int32 ``(n,)``; not read but by `STEP`, and so is the next.
        rewards: written, float64 of at least n elements.
        mode: `RESET`; `STEP`; `RESUME`, if a call before had no room for pieces.

    Returns:
        How many of the rows are active; -1 if `Rows.pieces` has to grow before a step is resumed.
    """
    full, left = False, 0
    for i in range(which.size):
        r = np.int64(which[i])
        unsettled = False
        if mode == RESET:
            begin_episode(m, jobs, rows, r)
            unsettled = rows.of[r].active and next_instant(m, jobs, costs, rows, r)
        elif mode == STEP and rows.of[r].active:
            take(m, jobs, costs, rows, r, np.int64(actions[i]))
            unsettled = True
        if mode != RESUME:
            rows.of[r].paused = rows.of[r].active
        offered = 0
        while rows.of[r].paused:
            if unsettled:
                settle(m, jobs, costs, order, rows, r)
            if not has_room(m, rows, r, 1):
                full = True
                break
            offered = offer(m, jobs, rows, r, True)
            unsettled = offered == 0 and mode != RESET and next_instant(m, jobs, costs, rows, r)
            rows.of[r].paused = unsettled
        if not rows.of[r].paused:
            if (offered == 0 and mode != RESUME) or not rows.of[r].active:
                show_nothing(jobs, rows, r)
            if mode != RESET:
                rewards[i] = rows.of[r].owed
        left += rows.of[r].active
    if full:
        return -1
    if mode != RESET:
        for i in range(which.size):
            rows.of[which[i]].owed = 0.0
    return left
