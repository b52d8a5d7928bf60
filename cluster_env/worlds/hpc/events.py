"""What runs, as compiled code keeps it: a heap of true ends, and a list of expected ones.

Both are arrays with a size beside them. Policies know the second alone: a job is expected to end
when its estimate is over. Where that was corrected, and the job outlives it, twice the time is
expected, up to what its user asked for; beyond that, the next second.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined

Times = NDArray[np.int64]
Indices = NDArray[np.int32]


class Jobs(NamedTuple):
    """The jobs of several jobsets, one after the other."""

    first: NDArray[np.int64]  # (num_jobsets + 1,), where those of each begin
    window: NDArray[np.int64]  # (num_jobsets,), seconds in which the use of the machine gains
    arrival: NDArray[np.int32]  # (num_jobs,), as all that follows but demand
    duration: NDArray[np.int32]  # as they are served: cut at the estimate in worlds that kill
    order_estimate: NDArray[np.int32]  # of jobs that wait: what orders, backfilling, policies see
    estimate: NDArray[np.int32]  # of jobs that run: from when on reservations count on their units
    limit: NDArray[np.int32]  # what the user asked for, to which an outlived estimate is raised
    demand: NDArray[np.int32]  # (num_jobs, num_resources)
    log: NDArray[np.float64]  # (num_jobs,), ln of the estimate that policies see


@njit_inlined
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


@njit_inlined
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


@njit_inlined
def expect(times: Times, jobs: Indices, size: int, time: int, job: int) -> None:
    """Enters an expected end into a list in falling order.

    The next end is the last of the list, so that little has to move when a job ends in time.
    """
    place = size
    while place > 0 and times[place - 1] < time:
        times[place], jobs[place] = times[place - 1], jobs[place - 1]
        place -= 1
    times[place], jobs[place] = time, job


@njit_inlined
def forget(times: Times, jobs: Indices, size: int, job: int) -> int:
    """Takes a job out of the list of expected ends, and returns its own."""
    place = size - 1
    kept_time, kept_job = times[place], jobs[place]
    while kept_job != job:  # what comes after the job moves up as it is passed
        place -= 1
        kept_time, times[place] = times[place], kept_time
        kept_job, jobs[place] = jobs[place], kept_job
    return int(kept_time)


@njit_inlined
def raise_outlived(
    times: Times,
    jobs: Indices,
    size: int,
    now: int,
    start: NDArray[np.int64],
    limit: NDArray[np.int32],
    demand: Indices,
) -> int:
    """Moves the expected ends of jobs that have outlived them, as far as their limits allow.

    Args:
        times: expected ends, in falling order.
        jobs: whose they are.
        size: how many.
        now: the clock.
        start: of each job.
        limit: seconds beyond which no estimate is raised.
        demand: of all jobs, int32 ``(num_jobs, num_resources)``.

    Returns:
        By how many processor seconds more is expected; 0 if no end was moved.
    """
    added, place = np.int64(0), size - 1
    while place >= 0 and times[place] <= now:
        job = jobs[place]
        before, last = times[place], start[job] + limit[job]
        if before >= last:
            place -= 1
            continue
        seconds = before - start[job]
        while start[job] + seconds <= now and start[job] + seconds < last:
            seconds = min(2 * seconds, np.int64(limit[job]))
        hole, end = place, start[job] + seconds
        while hole > 0 and times[hole - 1] < end:
            times[hole], jobs[hole] = times[hole - 1], jobs[hole - 1]
            hole -= 1
        times[hole], jobs[hole] = end, job
        added += (end - before) * demand[job, 0]
    return int(added)


@njit_inlined
def fits(demand: Indices, job: int, free: NDArray[np.int64]) -> bool:
    """Whether a job could start beside what runs."""
    room = demand[job, 0] <= free[0]
    for r in range(1, free.size):
        room = room and demand[job, r] <= free[r]
    return bool(room)


@njit_inlined
def add_units(units: NDArray[np.int64], demand: Indices, job: int, times: int) -> None:
    """Adds what a job asks for so many times, -1 to take it away."""
    for r in range(units.size):
        units[r] += times * demand[job, r]


@njit_inlined
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
        times: expected ends, in falling order.
        jobs: whose they are.
        size: how many.
        demand: of all jobs, int32 ``(num_jobs, num_resources)``.
        head: the job, which does not fit now.
        now: the clock.
        free: units that are free now.
        spare: written: units that will be free beside the job then.
    """
    for r in range(free.size):
        spare[r] = free[r] - demand[head, r]
    shadow, place, short = now, size, True
    while short:
        place -= 1
        shadow = max(times[place], now + 1)
        short = False
        for r in range(free.size):
            spare[r] += demand[jobs[place], r]
            short = short or spare[r] < 0
    while place > 0 and times[place - 1] <= shadow:
        place -= 1
        for r in range(free.size):
            spare[r] += demand[jobs[place], r]
    return int(shadow)
