"""The objective of utility accrual: the final utility of all jobs that finish.

It stands among the families and not in `OBJECTIVES`, whose objectives any job has: only jobs that
carry time-utility functions have this one.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.metric import Metric
from cluster_env.core.objective import Objective
from cluster_env.core.utility import final_utility, time_utility_functions
from cluster_env.objectives.registry import OBJECTIVE_FAMILIES


def _no_cost(jobset: JobSet) -> NDArray[np.float64]:
    time_utility_functions(jobset)  # refuses jobs without one, in whatever world
    return np.zeros(jobset.num_jobs)


UTILITY = Objective(
    "utility",
    _no_cost,
    utility_gain=1.0,
    measure=Metric(
        "utility", "mean final utility of a job", "job", final_utility, higher_is_better=True
    ),
)


@OBJECTIVE_FAMILIES.register("utility")
def read_accrued(name: str) -> Objective:
    """The objective ``utility``, which has no parameters."""
    if name != UTILITY.name:
        raise InputError(f"'utility' takes no parameters, but '{shortened(name)}' was given")
    return UTILITY
