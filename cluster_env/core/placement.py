"""Which units jobs could have had, for pictures: a simulator counts them only."""

import heapq
from bisect import insort

import numpy as np
from numpy.typing import NDArray

Interval = tuple[int, int]  # first unit, and the one behind the last


def place(
    start: NDArray[np.int64], end: NDArray[np.int64], size: NDArray[np.int64], units: int
) -> list[list[Interval]]:
    """Gives each job the lowest gap that it fits into as a whole, or else the lowest free units.

    Args:
        start: of the jobs, rising, ``(num_jobs,)``.
        end: of the jobs, ``(num_jobs,)``.
        size: units of each, ``(num_jobs,)``.
        units: of the machine; jobs that ask for more than is free get what is free.

    Returns:
        The intervals of each job.
    """
    free: list[Interval] = [(0, units)]
    running: list[tuple[int, int]] = []
    places: list[list[Interval]] = []
    for job in range(start.size):
        while running and running[0][0] <= start[job]:
            _give_back(free, places[heapq.heappop(running)[1]])
        places.append(_take(free, int(size[job])))
        heapq.heappush(running, (int(end[job]), job))
    return places


def paint(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    color: NDArray[np.int64],
    places: list[list[Interval]],
    units: int,
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """Paints jobs onto units (upwards) and columns of time (to the right).

    Args:
        begin: first column of each job, or before the image, ``(num_jobs,)``.
        end: the column behind its last one, likewise.
        color: a number above 0 of each, ``(num_jobs,)``.
        places: see `place`.
        units: of the machine.
        shape: rows and columns of the image.

    Returns:
        int64 of that shape; 0 is idle.
    """
    cells = np.zeros(shape, np.int64)
    left, right = np.clip(begin, 0, shape[1]), np.clip(end, 0, shape[1])
    for job, intervals in enumerate(places):
        for first, behind in intervals:
            low = int(np.ceil(first * shape[0] / units - 0.5))
            high = int(np.ceil(behind * shape[0] / units - 0.5))
            cells[low:high, left[job] : right[job]] = color[job]
    return cells


def _take(free: list[Interval], size: int) -> list[Interval]:
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
