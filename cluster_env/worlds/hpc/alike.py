"""Which jobs are alike: those of one user with the same demands and estimates.

No rule that keeps equals in order of arrival, and no scorer that lets waiting jobs go up, starts
one of them before another that came first.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import NOBODY, Jobs
from cluster_env.worlds.hpc.rules import Scores

_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that products of different numbers differ


@njit_kernel
def number_alike(jobs: Jobs, room: NDArray[np.int32]) -> None:
    """Finds the first job of its jobset that is alike for each job, by a table of hashes.

    ``room`` is for the table: a power of two, at least twice the jobs of any jobset.
    """
    records, demand = jobs.records, jobs.demand
    for jobset in range(jobs.first.size - 1):
        first, last = jobs.first[jobset], jobs.first[jobset + 1]
        size = np.int64(2)
        while size < 2 * (last - first):
            size *= 2
        room[:size] = NOBODY
        for job in range(first, last):
            key = np.uint64(records[job].order_estimate) * _MIX + np.uint64(records[job].user)
            for r in range(demand.shape[1]):
                key = key * _MIX + np.uint64(demand[job, r])
            key *= _MIX
            slot = np.int64(key >> np.uint64(33)) & (size - 1)
            while room[slot] != NOBODY and not _are_alike(jobs, first + room[slot], job):
                slot = (slot + 1) & (size - 1)
            if room[slot] == NOBODY:
                room[slot] = job - first
            records[job].alike = room[slot]


@njit_inlined
def _are_alike(jobs: Jobs, one: int, other: int) -> bool:
    """Whether two jobs have the same user, estimates and demands."""
    records, same = jobs.records, True
    for r in range(jobs.demand.shape[1]):
        same = same and jobs.demand[one, r] == jobs.demand[other, r]
    same = same and records[one].user == records[other].user
    same = same and records[one].limit == records[other].limit
    return bool(same and records[one].order_estimate == records[other].order_estimate)


@njit_kernel
def keeps_order(jobs: Jobs, scores: Scores, room: NDArray[np.int32]) -> bool:
    """Whether no fixed score of a job is below that of one that is alike and came before it.

    ``room`` is for the last job of each kind, as many as the longest jobset has jobs.
    """
    for jobset in range(jobs.first.size - 1):
        first, last = jobs.first[jobset], jobs.first[jobset + 1]
        for job in range(first, last):
            alike = jobs.records[job].alike
            if alike < job - first and scores[job] < scores[first + room[alike]]:
                return False
            room[alike] = job - first
    return True
