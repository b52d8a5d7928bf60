"""Columns of the jobs of a batch that a pool and a site have in common."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import new_records
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import uniforms as uniforms_of
from cluster_env.worlds.hpc.events import Jobs

_FOR_RULES = np.uint64(0x5EED)


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


def jobs_asked(batch: Batch, fields: np.dtype[Any], demand: NDArray[np.integer]) -> Jobs:
    """The jobs of a batch, with what all have (`cluster_env.worlds.hpc.events.ASKED`)."""
    records = new_records(batch.first[-1], fields)
    for name in ("arrival", "duration"):
        records[name] = batch.column(name, np.int32)
    records.order_estimate = _first_of(batch, "order_estimate", "estimate")
    records.estimate = _first_of(batch, "reserve_estimate", "estimate")
    records.limit = _first_of(batch, "estimate")
    records.user = np.concatenate([users_of(one)[0] for one in batch.jobsets])
    records.log = np.log(np.maximum(records.order_estimate, 1).astype(np.float64))
    records.log_size = np.log(demand[:, 0].astype(np.float64))
    return Jobs(batch.first, batch.window, records, np.ascontiguousarray(demand, np.int32))


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
