"""What runs, as compiled code keeps it: a heap of true ends, and a list of expected ones.

Both are arrays with a size beside them. Policies know the second alone: a job is expected to end
when its estimate is over. Where that was corrected, and the job outlives it, twice the time is
expected, up to what its user asked for; beyond that, the next second.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit

Times = NDArray[np.int64]
Indices = NDArray[np.int32]


class Jobs(NamedTuple):
    """The jobs of several jobsets, one after the other."""

    first: NDArray[np.int64]  # (num_jobsets + 1,), where those of each begin
    arrival: NDArray[np.int32]  # (num_jobs,), as all that follows but demand
    duration: NDArray[np.int32]  # as they are served: cut at the estimate in worlds that kill
    order_estimate: NDArray[np.int32]  # what orders and policies see
    estimate: NDArray[np.int32]  # what reservations are made from
    limit: NDArray[np.int32]  # what the user asked for, to which an outlived estimate is raised
    demand: NDArray[np.int32]  # (num_jobs, num_resources)


@njit(cache=True, nogil=True)
def push(times: Times, jobs: Indices, size: int, time: int, job: int) -> None:
    """Puts an end into a heap that has room for one more than `size`."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if times[above] <= time:
            break
        times[place], jobs[place] = times[above], jobs[above]
        place = above
    times[place], jobs[place] = time, job


@njit(cache=True, nogil=True)
def pop(times: Times, jobs: Indices, size: int) -> int:
    """Takes the job with the earliest end out of a heap."""
    first = jobs[0]
    last = size - 1
    time, job = times[last], jobs[last]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[place], jobs[place] = times[below], jobs[below]
        place = below
    times[place], jobs[place] = time, job
    return int(first)


@njit(cache=True, nogil=True)
def expect(times: Times, jobs: Indices, size: int, time: int, job: int) -> None:
    """Enters an expected end into a list in rising order."""
    place = size
    while place > 0 and times[place - 1] > time:
        times[place], jobs[place] = times[place - 1], jobs[place - 1]
        place -= 1
    times[place], jobs[place] = time, job


@njit(cache=True, nogil=True)
def forget(times: Times, jobs: Indices, size: int, time: int, job: int) -> None:
    """Takes a job out of the list of expected ends."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    while jobs[low] != job:
        low += 1
    for place in range(low, size - 1):
        times[place], jobs[place] = times[place + 1], jobs[place + 1]


@njit(cache=True, nogil=True)
def raise_outlived(
    times: Times,
    jobs: Indices,
    size: int,
    now: int,
    start: NDArray[np.int64],
    limit: NDArray[np.int32],
    planned: NDArray[np.int64],
) -> bool:
    """Moves the expected ends of jobs that have outlived them, as far as their limits allow.

    Args:
        times: expected ends.
        jobs: whose they are.
        size: how many.
        now: the clock.
        start: of each job.
        limit: seconds beyond which no estimate is raised.
        planned: written: the expected end of each job.

    Returns:
        Whether any was moved.
    """
    moved, place = False, 0
    while place < size and times[place] <= now:
        job = jobs[place]
        last = start[job] + limit[job]
        if times[place] >= last:
            place += 1
            continue
        seconds = times[place] - start[job]
        while start[job] + seconds <= now and start[job] + seconds < last:
            seconds = min(2 * seconds, np.int64(limit[job]))
        moved, hole, end = True, place, start[job] + seconds
        while hole + 1 < size and times[hole + 1] <= end:
            times[hole], jobs[hole] = times[hole + 1], jobs[hole + 1]
            hole += 1
        times[hole], jobs[hole], planned[job] = end, job, end
    return moved


@njit(cache=True, nogil=True, inline="always")
def fits(demand: Indices, job: int, free: NDArray[np.int64]) -> bool:
    """Whether a job could start beside what runs."""
    room = demand[job, 0] <= free[0]
    for r in range(1, free.size):
        room = room and demand[job, r] <= free[r]
    return bool(room)


@njit(cache=True, nogil=True)
def reserve(
    times: Times,
    jobs: Indices,
    size: int,
    demand: Indices,
    head: int,
    now: int,
    free: NDArray[np.int64],
    spare: NDArray[np.int64],
) -> int:
    """The earliest time at which a job is expected to fit (its *shadow time*, as EASY has it).

    Args:
        times: expected ends.
        jobs: whose they are.
        size: how many.
        demand: of all jobs, int32 ``(num_jobs, num_resources)``.
        head: the job, which does not fit now.
        now: the clock.
        free: units that are free now.
        spare: written: units that will be free beside the job then.
    """
    for r in range(free.size):
        spare[r] = free[r]
    shadow = now
    place = 0
    while not fits(demand, head, spare):
        shadow = max(times[place], now + 1)
        for r in range(free.size):
            spare[r] += demand[jobs[place], r]
        place += 1
    while place < size and times[place] <= shadow:
        for r in range(free.size):
            spare[r] += demand[jobs[place], r]
        place += 1
    for r in range(free.size):
        spare[r] -= demand[head, r]
    return int(shadow)
