"""When jobs become late, and what they cost from then on: one list in the order of time.

The list lets the simulator walk on by the clock alone, instead of asking every job in every step
how long it has been in the system.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.objectives.objective import Objective
from cluster_env.worlds.deeprm.kernels import LateState

_NEVER = np.iinfo(np.int32).max


class LateCosts(NamedTuple):
    """The late costs of one jobset, those of 0 left out."""

    time: NDArray[np.int32]  # (num_late,), never decreasing: the step from which it is charged
    job: NDArray[np.int32]  # (num_late,)
    cost: NDArray[np.float64]  # (num_late,)


def late_costs(jobset: JobSet, objective: Objective) -> LateCosts:
    """Lists the late costs of a jobset.

    Raises:
        InputError: if a job is to be late before it arrives.
    """
    times = [np.empty(0, np.int64)]
    jobs = [np.empty(0, np.int64)]
    costs = [np.empty(0, np.float64)]
    for late in objective.late_costs:
        cost, after = late.cost(jobset), late.after(jobset).astype(np.int64)
        if np.any(after < 0):
            raise InputError(
                f"the objective '{objective.name}' charges a job {-after.min()} steps before it "
                f"arrives; let a late cost begin after 0 steps or more"
            )
        [charged] = np.nonzero(cost)
        times.append(jobset.arrival[charged] + after[charged])
        jobs.append(charged)
        costs.append(cost[charged])
    time = np.minimum(np.concatenate(times), _NEVER)
    order = np.argsort(time, kind="stable")
    return LateCosts(
        time=time[order].astype(np.int32),
        job=np.concatenate(jobs)[order].astype(np.int32),
        cost=np.concatenate(costs)[order],
    )


def late_state(
    jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int
) -> LateState | None:
    """The late costs of jobsets, padded to those with the most, with room for the episodes.

    Returns:
        None if no job has any.

    Raises:
        InputError: see `late_costs`.
    """
    if not objective.late_costs:
        return None
    lists = [late_costs(jobset, objective) for jobset in jobsets]
    most_late = max(late.time.size for late in lists)
    if most_late == 0:
        return None
    padded = (len(lists), most_late + 1)
    per_job = (len(lists) * episodes_per_jobset, max(jobset.num_jobs for jobset in jobsets))
    state = LateState(
        time=np.full(padded, _NEVER, np.int32),
        job=np.zeros(padded, np.int32),
        cost=np.zeros(padded, np.float64),
        next=np.zeros(per_job[0], np.int32),
        rate=np.zeros(per_job, np.float64),
        gone=np.zeros(per_job, np.bool_),
    )
    for k, late in enumerate(lists):
        state.time[k, : late.time.size] = late.time
        state.job[k, : late.time.size] = late.job
        state.cost[k, : late.time.size] = late.cost
    return state
