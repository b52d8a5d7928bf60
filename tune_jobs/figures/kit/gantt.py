"""Which processors jobs could have had, for pictures: a simulator counts them only."""

import heapq
from bisect import insort

import numpy as np
from numpy.typing import NDArray

Interval = tuple[int, int]  # first processor, and the one behind the last


def lay_out(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    size: NDArray[np.int64],
    color: NDArray[np.int64],
    processors: int,
    shape: tuple[int, int],
) -> NDArray[np.uint8]:
    """Paints jobs onto processors (upwards) and time (to the right).

    Args:
        start: of the jobs, rising, from 0, ``(num_jobs,)``.
        end: of the jobs, ``(num_jobs,)``.
        size: processors of each, ``(num_jobs,)``.
        color: of each, 1 to 255, ``(num_jobs,)``.
        processors: of the machine.
        shape: rows and columns of the image.

    Returns:
        uint8 of that shape; 0 is idle.
    """
    rows, columns = shape
    cells = np.zeros(shape, np.uint8)
    span = int(end.max())
    left = np.ceil(start * (columns / span) - 0.5).astype(np.int64)
    right = np.ceil(end * (columns / span) - 0.5).astype(np.int64)
    free: list[Interval] = [(0, processors)]
    running: list[tuple[int, int, list[Interval]]] = []
    for job in range(start.size):
        while running and running[0][0] <= start[job]:
            _give_back(free, heapq.heappop(running)[2])
        taken = _take(free, int(size[job]))
        heapq.heappush(running, (int(end[job]), job, taken))
        for first, behind in taken:
            low = int(np.ceil(first * rows / processors - 0.5))
            high = int(np.ceil(behind * rows / processors - 0.5))
            cells[low:high, left[job] : right[job]] = color[job]
    return cells


def _take(free: list[Interval], size: int) -> list[Interval]:
    """Takes the lowest gap that a job fits into as a whole, or else the lowest processors."""
    for k, (first, behind) in enumerate(free):
        if behind - first >= size:
            free[k : k + 1] = [(first + size, behind)] if behind - first > size else []
            return [(first, first + size)]
    taken = []
    while size > 0 and free:
        first, behind = free.pop(0)
        used = min(size, behind - first)
        taken.append((first, first + used))
        if used < behind - first:
            free.insert(0, (first + used, behind))
        size -= used
    return taken


def _give_back(free: list[Interval], taken: list[Interval]) -> None:
    for interval in taken:
        insort(free, interval)
    merged: list[Interval] = []
    for first, behind in free:
        if merged and merged[-1][1] == first:
            merged[-1] = (merged[-1][0], behind)
        else:
            merged.append((first, behind))
    free[:] = merged
