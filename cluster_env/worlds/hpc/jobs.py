"""The jobs of several jobsets as compiled code keeps them, one after the other.

In a pool jobs are *alike* if they are of one user and have the same demands and estimates. No rule
that keeps equals in order of arrival, and no scorer that lets waiting jobs go up, starts one of
them before another that came first.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import new_records, njit_inlined, njit_kernel
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import uniforms as uniforms_of
from cluster_env.worlds.hpc.run_times import ACTUAL, LEARNED, NUM_GROUPS, groups_of

NOBODY = -1

ASKED = [
    *((name, np.int32) for name in ("arrival", "duration")),
    # What is believed of a job that waits (what orders, backfilling and policies see), and of
    # one that runs (from when on reservations count on its units).
    *((name, np.int32) for name in ("order_estimate", "estimate")),
    # What its user asked for, to which an outlived estimate is raised; and which of the users
    # of its jobset that is.
    *((name, np.int32) for name in ("limit", "user")),
    # ln of the estimate that policies see, and of the processors.
    *((name, np.float64) for name in ("log", "log_size")),
    # Which class it is of, where policies tell classes apart.
    ("job_class", np.int32),
]
"""Of a job anywhere, but for its demands."""

JOB = np.dtype([*ASKED, ("alike", np.int32)], align=True)
"""Of a job in a pool: with the first job of its jobset that is alike."""

Records = Any  # np.recarray, of whose fields a type checker knows nothing

_FOR_RULES = np.uint64(0x5EED)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that products of different numbers differ


class Jobs(NamedTuple):
    """The jobs of several jobsets, one after the other."""

    first: NDArray[np.int64]  # (num_jobsets + 1,), where those of each begin
    window: NDArray[np.int64]  # (num_jobsets,), seconds in which the use of the machine gains
    records: Records  # (num_jobs,), see `JOB`
    demand: NDArray[np.int32]  # (num_jobs, num_resources)
    groups: NDArray[np.int32]  # (num_jobs, NUM_GROUPS), or of no job where nothing is learned


def chance_scores(batch: Batch, keys: NDArray[np.uint64] | None) -> NDArray[np.float64]:
    """Random numbers of all jobs of a batch, from the keys of its episodes."""
    keys = np.zeros(batch.num_episodes, np.uint64) + _FOR_RULES if keys is None else keys
    first_row = np.searchsorted(batch.jobset, np.arange(len(batch.jobsets)))
    return np.concatenate(
        [
            uniforms_of(keys[row] + np.arange(one.num_jobs, dtype=np.uint64), 0)
            for row, one in zip(first_row, batch.jobsets, strict=True)
        ]
    )


def submits(batch: Batch) -> NDArray[np.int64]:
    """Times of submission by the log's own clock, where jobs know it, int64 ``(num_jobs,)``."""
    return batch.column(lambda one: one.attributes.get("submit", one.arrival), np.int64)


def jobs_asked(
    batch: Batch, fields: np.dtype[Any], demand: NDArray[np.integer], model: int
) -> Jobs:
    """The jobs of a batch, with what all have (`cluster_env.worlds.hpc.events.ASKED`).

    Of a model that learns, the batch has a jobset for each episode.
    """
    records = new_records(batch.first[-1], fields)
    for name in ("arrival", "duration", "job_class"):
        records[name] = batch.column(name, np.int32)
    asked = () if model == ACTUAL else ("estimate",)
    records.order_estimate = _first_of(batch, "order_estimate", *asked)
    records.estimate = _first_of(batch, "reserve_estimate", *asked)
    records.limit = _first_of(batch, "estimate")
    records.user = np.concatenate([users_of(one)[0] for one in batch.jobsets])
    records.log = np.log(np.maximum(records.order_estimate, 1).astype(np.float64))
    records.log_size = np.log(demand[:, 0].astype(np.float64))
    groups = groups_of(batch) if model in LEARNED else np.zeros((0, NUM_GROUPS), np.int32)
    demands = np.ascontiguousarray(demand, np.int32)
    return Jobs(batch.first, batch.window, records, demands, groups)


def num_users(batch: Batch) -> NDArray[np.int64]:
    """The largest number of a user of each jobset, and one more, int64 ``(num_jobsets,)``."""
    return np.array([users_of(one)[1] for one in batch.jobsets], np.int64)


def _first_of(batch: Batch, *names: str) -> NDArray[np.int32]:
    """The first of these attributes that a jobset has, or the run time, int32 ``(num_jobs,)``."""

    def column(one: JobSet) -> Any:
        known = (one.attributes.get(name) for name in names)
        return next((values for values in known if values is not None), one.duration)

    return batch.column(column, np.int32)


def users_of(jobset: JobSet) -> tuple[NDArray[np.integer], int]:
    """Which of its users each job belongs to, from 0 on; and the largest number of one, plus 1.

    Users without a job would cost time, and nothing else.
    """
    user = jobset.attributes.get("user")
    if user is None or not jobset.num_jobs:
        return np.zeros(jobset.num_jobs, np.int32), 1
    return np.unique(user, return_inverse=True)[1], int(user.max()) + 1


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
def keeps_order(jobs: Jobs, scores: NDArray[np.float64], room: NDArray[np.int32]) -> bool:
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
