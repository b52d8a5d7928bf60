"""What a state shows of the time to come, and of when its jobs arrived, as compiled code.

See `cluster_env.worlds.hpc.state.CLOCK` for what it is.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.passes import RUNNING, Episode
from cluster_env.worlds.hpc.state import CLOCK


@njit_inlined
def note_arrival_state(
    out: NDArray[np.int32], waiting: int, queued_work: float, free: int, remaining_work: float
) -> None:
    """Writes what is true when a job arrives, before it joins the queue."""
    out[0], out[1] = waiting, log_thousandths(queued_work)
    out[2], out[3] = free, log_thousandths(remaining_work)


@njit_inlined
def show_horizon(
    out: NDArray[np.int32],
    num_rows: int,
    step: int,
    it: Episode,
    now: int,
    remaining_work: float,
) -> None:
    """Writes `CLOCK` and the rows of the horizon.

    Args:
        out: int32, from `CLOCK` on.
        num_rows: of the horizon.
        step: seconds from row to row; 0: each row is the next time at which jobs are expected to
            end, and where there is none, the row before it a second later (figure 4.5).
        it: the episode.
        now: its clock.
        remaining_work: that is expected of running jobs.
    """
    out[0], out[1] = now, log_thousandths(remaining_work)
    size = 1 + it.free.size
    coming = it.sizes[RUNNING] - 1
    for row in range(num_rows):
        place = len(CLOCK) + row * size
        offset = np.int64(0)
        for r in range(it.free.size):
            out[place + 1 + r] = it.free[r] if row == 0 else out[place + 1 + r - size]
        if step > 0:
            offset = np.int64(row * step)
        elif row > 0 and coming >= 0:
            offset = max(it.expected[coming], now + 1) - now
        elif row > 0:
            offset = np.int64(out[place - size]) + 1
        while coming >= 0 and max(it.expected[coming], now + 1) - now <= offset:
            job = it.expected_jobs[coming]
            for r in range(it.free.size):
                out[place + 1 + r] += it.demand[job, r]
            coming -= 1
        out[place] = min(offset, np.int64(2**31 - 1))


@njit_inlined
def log_thousandths(work: float) -> int:
    """``ln(1 + work)`` in thousandths."""
    return round(1000 * math.log(1.0 + max(work, 0.0)))
