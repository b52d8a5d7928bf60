"""A workload of one's own: everything arrives at once, at night.

Known to every command with METASCHED_IMPORTS=own_workload in the environment:
metasched compare --set task.workload.kind=nightly --set task.workload.num_jobs=40
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import WorkloadSpec
from cluster_env.worlds import get_spec
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster


@dataclass(frozen=True)
class Nightly:
    """Its fields are its settings, but for those that the world gives."""

    cluster: Cluster = field(default_factory=Cluster)
    num_jobs: int = 30
    window: int = 1

    def sample(self, rng: np.random.Generator) -> JobSet:
        duration = rng.integers(1, self.cluster.horizon // 2, self.num_jobs)
        demand = rng.integers(1, np.asarray(self.cluster.capacity) + 1, (self.num_jobs, 2))
        return JobSet.of(np.zeros(self.num_jobs), duration, demand, self.window)


def _given(world: DeepRM) -> Mapping[str, Any]:
    return {"cluster": world.cluster}


get_spec("deeprm").workloads.register("nightly")(WorkloadSpec(Nightly, _given))
