"""A plan of one pool: from when on how much is free, and rooms that jobs take out of it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import NEVER, Episode


class Plan(NamedTuple):
    """When waiting jobs are to start; the status of an episode says whether it `holds`."""

    state: NDArray[np.int64]  # (3,), see below
    start: NDArray[np.int64]  # (num_jobs,), of those that wait
    narrowest: NDArray[np.int32]  # of the last job of the queue, of the last two, and so on
    times: NDArray[np.int64]  # when what is free changes
    free: NDArray[np.int64]  # (num_times, num_resources), what is free from then on
    reach: NDArray[np.int64]  # (32,), no time before has 2^k processors free

    @classmethod
    def of(cls, num_jobs: int, num_resources: int) -> "Plan":
        """Room for the plans of jobsets of up to so many jobs; 0 where none is made."""
        return cls(
            state=np.zeros(3, np.int64),
            start=np.empty(num_jobs, np.int64),
            narrowest=np.empty(num_jobs, np.int32),
            times=np.empty(2 * num_jobs, np.int64),
            free=np.empty((2 * num_jobs, num_resources), np.int64),
            reach=np.zeros(32, np.int64),
        )


FIRST, SIZE, NEXT = range(3)
"""Places of a plan's state: the first time that is not over; how many times there are, with those
that are over; next start."""


@njit_inlined
def has_room(plan: Plan, demand: NDArray[np.int32], estimate: int, now: int) -> bool:
    """Whether a job could start now and delay nobody who stands in a plan that was made now."""
    k, room = np.int64(0), True
    while room and k < plan.state[SIZE] and plan.times[k] < now + estimate:
        for r in range(demand.size):
            room = room and plan.free[k, r] >= demand[r]
        k += 1
    return bool(room)


@njit_inlined
def plan_running(episode: Episode, plan: Plan, now: int) -> None:
    """A new plan with what runs alone."""
    times, free, size = plan.times, plan.free, 1
    times[0] = now
    for r in range(episode.free.size):
        free[0, r] = episode.free[r]
    # The next end is the last of the list; what ends at the same time is one change.
    for k in range(episode.status[0].running - 1, -1, -1):
        end, job = max(episode.expected[k], now + 1), episode.expected_jobs[k]
        if times[size - 1] < end:
            times[size] = end
            for r in range(episode.free.size):
                free[size, r] = free[size - 1, r]
            size += 1
        for r in range(episode.free.size):
            free[size - 1, r] += episode.demand[job, r]
    plan.state[FIRST], plan.state[SIZE], plan.state[NEXT] = 0, size, NEVER
    for wide in range(plan.reach.size):
        plan.reach[wide] = 0


@njit_inlined
def book(plan: Plan, demand: NDArray[np.int32], estimate: int) -> int:
    """Takes the earliest room of a job out of a plan, and returns its start."""
    times, free = plan.times, plan.free
    size, wide = plan.state[SIZE], 0
    while (2 << wide) <= demand[0]:
        wide += 1
    # Free processors only become fewer while jobs are booked, so nobody looks there twice.
    begin = max(plan.reach[wide], plan.state[FIRST])
    while free[begin, 0] < (1 << wide):
        begin += 1
    plan.reach[wide] = begin
    # Where there is no room for the whole estimate, a later begin is tried.
    k = begin
    while k < size and times[k] < times[begin] + estimate:
        for r in range(demand.size):
            if free[k, r] < demand[r]:
                begin = k + 1
                break
        k += 1
    # What is free changes at the end, too; times that come later move by one place.
    start, end, last = times[begin], times[begin] + estimate, k
    if last == size or times[last] > end:
        for k in range(size, last, -1):
            times[k] = times[k - 1]
            for r in range(demand.size):
                free[k, r] = free[k - 1, r]
        times[last] = end
        for r in range(demand.size):
            free[last, r] = free[last - 1, r]
        plan.state[SIZE] = size + 1
        for wide in range(plan.reach.size):
            plan.reach[wide] += plan.reach[wide] >= last
    for k in range(begin, last):
        for r in range(demand.size):
            free[k, r] -= demand[r]
    return int(start)
