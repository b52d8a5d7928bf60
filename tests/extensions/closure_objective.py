"""An objective that a function makes: its costs are closures over the arguments.

Known to every command with METASCHED_IMPORTS=closure_objective in the environment:
metasched train deeprm-ppo --set task.objective=overdue
"""

import numpy as np

from cluster_env.objectives import OBJECTIVES, LateCost, Objective


def overdue(factor: int) -> Objective:
    """A job costs 1 a time step from the moment that it is late, which depends on its duration."""
    return Objective(
        "overdue",
        job_cost=lambda jobset: np.zeros(jobset.num_jobs),
        late_costs=(
            LateCost(
                cost=lambda jobset: np.ones(jobset.num_jobs),
                after=lambda jobset: (factor * jobset.duration).astype(np.int32),
            ),
        ),
    )


OBJECTIVES.register("overdue")(overdue(2))
