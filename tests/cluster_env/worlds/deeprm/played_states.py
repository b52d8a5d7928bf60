"""States of played episodes, of clusters of several shapes."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Split
from cluster_env.objectives import get_objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from tests.cluster_env.worlds.stepping import step_all

CLUSTERS = {
    "default": Cluster(),
    "one_slot": Cluster(num_slots=1),
    "uneven": Cluster(capacity=(3, 17, 8), horizon=16, num_slots=4, backlog_view=23),
    "no_backlog": Cluster(capacity=(10,), horizon=30, num_slots=6, backlog_view=0),
    "classes": Cluster(num_slots=5, num_classes=4),
    "wide": Cluster(capacity=(255, 64), horizon=15, num_slots=2, backlog_view=200),
}


def played_states(cluster: Cluster) -> NDArray[np.uint8]:
    """States of 60 random episodes at a high load, (n, state_size)."""
    workload = BimodalWorkload(load=1.0, cluster=cluster, demands="released")
    simulator = DeepRM(cluster).simulator()
    jobsets = sample_jobsets(workload, 3, Split.TRAIN, range(60))
    simulator.load(jobsets, get_objective("slowdown"))
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(80):
        seen.append(simulator.states[::7].copy())
        step_all(simulator, rng.integers(0, cluster.num_actions, 60).astype(np.int32))
    return np.unique(np.concatenate(seen), axis=0)
