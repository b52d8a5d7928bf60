"""The packing rules of sched-rl-gym, the code of Cunha's thesis, to repeat its schedules.

They differ from ordinary practice: one pass over the queue at each instant, with scores that know
what was free before this instant's completions and are not updated while jobs start; equals are
taken in reverse; and the queue stays in the order of the last pass. `tetris` adds free memory to
demanded memory where a product was meant.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

SCHEDGYM_ORDERS = ("packer", "tetris")

_NEVER = 2**62


def play_like_schedgym(
    order: str,
    arrival: NDArray[np.int32],
    duration: NDArray[np.int32],
    estimate: NDArray[np.int32],
    demand: NDArray[np.int32],
    capacity: NDArray[np.int64],
    start: NDArray[np.int64],
) -> int:
    """Plays a jobset.

    Args:
        order: one of `SCHEDGYM_ORDERS`.
        arrival: seconds, int32 ``(num_jobs,)``, rising.
        duration: seconds, int32 ``(num_jobs,)``.
        estimate: seconds, int32 ``(num_jobs,)``.
        demand: int32 ``(num_jobs, num_resources)``.
        capacity: int64 ``(num_resources,)``.
        start: written, int64 ``(num_jobs,)``.

    Returns:
        The clock at the last completion.
    """
    free, queue = capacity.astype(np.int64), np.empty(0, np.intp)
    running: list[tuple[int, int]] = []  # heap of ends and jobs
    coming = now = 0
    while coming < arrival.size or running:
        next_arrival = int(arrival[coming]) if coming < arrival.size else _NEVER
        now = min(next_arrival, running[0][0] if running else _NEVER)
        known_free = free.copy()
        while running and running[0][0] == now:
            free += demand[heapq.heappop(running)[1]]
        last = int(np.searchsorted(arrival, now, side="right"))
        queue, coming = np.concatenate([queue, np.arange(coming, last)]), max(coming, last)
        queue = queue[_order(order, estimate[queue], demand[queue], known_free)]
        stays = np.ones(queue.size, np.bool_)
        for place, job in enumerate(queue):
            if (demand[job] <= free).all():
                free -= demand[job]
                start[job], stays[place] = now, False
                heapq.heappush(running, (now + int(duration[job]), int(job)))
        queue = queue[stays]
    return now


def _order(
    order: str, estimate: NDArray[np.int32], demand: NDArray[np.int32], free: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Places of a queue, best first."""
    score = (demand * free).sum(axis=1).astype(np.float64)
    if order == "tetris":
        slip = demand[:, 0] * free[0] + (demand[:, 1:] + free[1:]).sum(axis=1)
        score = 0.5 * slip + 0.5 / estimate
    return np.argsort(score, kind="stable")[::-1]
