"""An order, a policy, a workload and an objective of one's own, in a package of its own."""

from dataclasses import dataclass

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import TRAINING_DATA, Heuristic, WorkloadSpec
from cluster_env.objectives import OBJECTIVES, LateCost, Objective
from cluster_env.worlds import get_spec
from cluster_env.worlds.hpc.rules import order

HPC = get_spec("hpc")


@order("root-area")
def _root_area(estimate, size, submit):
    return np.sqrt(estimate * size) + submit / 1000


TRAINING_DATA.register("root-area")(())  # it has seen no log; other policies name theirs


@dataclass(frozen=True)
class Widest:
    """Starts, of the oldest jobs that fit, the widest."""

    world: object
    name: str = "widest"

    def act(self, states, uniforms):
        seen = self.world.features(states)
        size = np.where(seen.allowed[:, :-1], seen.items[:, :, 3], -1.0)
        return np.where(size.max(axis=1) < 0, size.shape[1], size.argmax(axis=1)).astype(np.int32)


HPC.heuristics.register("widest")(Heuristic.unnumbered("widest", Widest))


@dataclass(frozen=True)
class AtOnce:
    """Jobs of an hour and of half the machine; its fields are settings, but for the world's."""

    processors: int = 256
    jobs: int = 50

    def sample(self, rng):
        demand = rng.integers(1, self.processors // 2 + 1, (self.jobs, 1))
        return JobSet.of(np.zeros(self.jobs), rng.integers(1, 3601, self.jobs), demand)


HPC.workloads.register("at-once")(
    WorkloadSpec(AtOnce, lambda world: {"processors": world.processors})
)

OBJECTIVES.register("hour")(
    Objective(
        "hour",
        job_cost=lambda jobset: np.zeros(jobset.num_jobs),
        late_costs=(
            LateCost(
                cost=lambda jobset: np.ones(jobset.num_jobs),
                after=lambda jobset: np.full(jobset.num_jobs, 3600, np.int32),
            ),
        ),
    )
)
