"""Which jobs are kept waiting though there is room for them (DeepRM, section 4.3 and figure 7).

DeepRM is not work-conserving: it keeps a job waiting even if there are enough resources for it.
Whether a policy did so is worked out from the schedule alone, in hindsight, step by step:

* what is in use in a step is what the jobs hold that run in it, those that start in it included;
* a waiting job *could have started* in a step if its demand fits into what is left. As no job that
  runs gets larger, it would then have fitted from there to its end;
* a job is *withheld* if there is such a step before its start; it is withheld from the first such
  step until it starts, or until its episode ends.

Three things are not asked. Bookings: a job that is booked for a later step uses nothing before,
so a job that would have delayed it counts as one that could have started. Slots: a job counts even
if it waited in the backlog, where the policy does not see it; that too is the policy's choice of
what fills the slots. Joint fit: of two jobs that fit beside what runs, but not both, both count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Withholding:
    """What a policy withheld.

    Attributes:
        first_fit: first step in which each job could have started, its start if that is the first,
            -1 if there was none, int32 ``(num_jobs,)``.
        waited: steps that each job waited from then on, 0 if it was not withheld, int32
            ``(num_jobs,)``.
        holding_steps: steps of each episode in which a waiting job could have started, but did not,
            int32 ``(num_episodes,)``.
    """

    first_fit: NDArray[np.int32]
    waited: NDArray[np.int32]
    holding_steps: NDArray[np.int32]

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Which jobs were withheld, bool ``(num_jobs,)``."""
        held: NDArray[np.bool_] = self.waited > 0
        return held


def find_withheld(schedule: Schedule) -> Withholding:
    """Works out which jobs of a schedule were withheld, and for how long.

    The schedule is of all jobs of whole episodes, in any order: what does not count uses the
    cluster, too.
    """
    order = np.lexsort((schedule.job, schedule.episode))
    num_jobs = np.bincount(schedule.episode, minlength=schedule.num_episodes)
    bounds = np.concatenate([[0], np.cumsum(num_jobs)]).astype(np.int64)
    first_fit = np.full(schedule.job.size, -1, np.int32)
    waited = np.zeros(schedule.job.size, np.int32)
    holding_steps = np.zeros(schedule.num_episodes, np.int32)
    _search(
        order,
        bounds,
        schedule.arrival,
        schedule.start,
        schedule.duration,
        schedule.demand,
        schedule.end,
        schedule.capacity,
        first_fit,
        waited,
        holding_steps,
    )
    return Withholding(first_fit, waited, holding_steps)


@njit(cache=True, nogil=True)
def _search(
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    arrival: NDArray[np.int32],
    start: NDArray[np.int32],
    duration: NDArray[np.int32],
    demand: NDArray[np.int32],
    end: NDArray[np.int32],
    capacity: NDArray[np.int32],
    first_fit: NDArray[np.int32],
    waited: NDArray[np.int32],
    holding_steps: NDArray[np.int32],
) -> None:
    """Fills the last three arrays, episode by episode; ``bounds`` cuts ``order`` into episodes."""
    num_resources = capacity.size
    for episode in range(end.size):
        jobs = order[bounds[episode] : bounds[episode + 1]]
        # What the whole schedule leaves free of each resource in each step.
        free = np.empty((end[episode], num_resources), np.int64)
        free[:] = capacity
        for job in jobs:
            if start[job] >= 0:
                for step in range(start[job], min(start[job] + duration[job], end[episode])):
                    free[step] -= demand[job]
        # In which steps a job waited though it fitted, and from when on.
        holding = np.zeros(end[episode], np.bool_)
        for job in jobs:
            starts = start[job] >= 0 and start[job] < end[episode]
            until = start[job] if starts else end[episode]
            for step in range(arrival[job], until):
                if np.all(demand[job] <= free[step]):
                    holding[step] = True
                    if first_fit[job] < 0:
                        first_fit[job] = step
            if first_fit[job] >= 0:
                waited[job] = until - first_fit[job]
            elif starts:  # at the first moment at which it could
                first_fit[job] = start[job]
        holding_steps[episode] = holding.sum()
