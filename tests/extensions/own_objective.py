"""An objective of one's own: a job is due three times its duration after it arrives.

Known to every command with METASCHED_IMPORTS=own_objective in the environment:
metasched train deeprm-ppo --set task.objective=tardiness
"""

import numpy as np

from cluster_env.objectives import OBJECTIVES, LateCost, Objective

TARDINESS = Objective(
    "tardiness",
    job_cost=lambda jobset: np.zeros(jobset.num_jobs),
    late_costs=(
        LateCost(
            cost=lambda jobset: np.ones(jobset.num_jobs),
            after=lambda jobset: (3 * jobset.duration).astype(np.int32),
        ),
    ),
)
OBJECTIVES.register("tardiness")(TARDINESS)  # its metric is derived from it
