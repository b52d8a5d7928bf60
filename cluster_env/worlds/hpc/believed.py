"""Run times that a policy believes by itself: between what users ask for and what their jobs took.

Jobs of logs run for a fraction of what their users ask for, and each user errs in a way of their
own. A policy that believes less orders better and backfills more. Nobody is killed by it, and
reservations go by what users ask for.
"""

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.workloads.run_times import mixed_with_past
from cluster_env.worlds.hpc.bounds import under_reference
from cluster_env.worlds.hpc.world import HPC

_BELIEVED: WeakKeyDictionary[JobSet, tuple[HPC, JobSet]] = WeakKeyDictionary()


def with_believed(world: HPC, jobset: JobSet) -> JobSet:
    """The jobs with the attribute ``order_estimate``, in place of the estimate while they wait.

    That is `mixed_with_past` of those jobs of the jobset that had ended. When they end depends on
    the schedule, so it is taken from that of `REFERENCE`: what is believed is the same for all
    policies, and depends on no job that arrives later. Jobs without estimates, or of which
    something is believed already, stay as they are.
    """
    attributes = jobset.attributes
    if "estimate" not in attributes or "order_estimate" in attributes or not jobset.num_jobs:
        return jobset
    known = _BELIEVED.get(jobset)
    # Searches show the same jobsets to one candidate after the other.
    if known is None or known[0] != world:
        believed = _believed(world, jobset).astype(np.int32)
        seen = replace(jobset, attributes={**attributes, "order_estimate": believed})
        _BELIEVED[jobset] = known = (world, seen)
    return known[1]


def _believed(world: HPC, jobset: JobSet) -> NDArray[np.int64]:
    schedule = under_reference(world, jobset)
    # A job that has not finished when the clock ends teaches nobody anything.
    never = np.iinfo(np.int64).max
    end = np.full(jobset.num_jobs, never)
    end[schedule.job] = np.where(schedule.finished, schedule.finish, never)
    user = jobset.attributes.get("user")
    return mixed_with_past(
        jobset.arrival.astype(np.int64),
        end,
        jobset.duration.astype(np.int64),
        np.asarray(jobset.attributes["estimate"], np.int64),
        jobset.demand[:, 0].astype(np.int64),
        np.zeros(jobset.num_jobs, np.int64) if user is None else np.asarray(user, np.int64),
    )
