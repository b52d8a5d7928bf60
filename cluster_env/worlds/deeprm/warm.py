"""Runs everything of DeepRM's world that is compiled, once; `cluster_env.warm` calls it."""

import numpy as np

from cluster_env.core.world import get_heuristic
from cluster_env.envs.cluster import ClusterEnv
from cluster_env.envs.vector import ClusterVectorEnv
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.heuristics import HEURISTICS
from cluster_env.worlds.deeprm.observations import MASKS, OBSERVATIONS
from cluster_env.worlds.deeprm.rules import RULES
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from cluster_env.worlds.deeprm.world import DeepRM

# Compiled code does not depend on sizes, so small ones do.
CLUSTER = Cluster(capacity=(4, 4), horizon=6, num_slots=2, backlog_view=6)
WORKLOAD = BimodalWorkload(
    load=0.5, window=8, cluster=CLUSTER, small_duration=(1, 2), large_duration=(3, 4)
)


def warm() -> None:
    """Runs every simulator, heuristic, observation and mask once."""
    jobsets = [WORKLOAD.sample(np.random.default_rng(seed)) for seed in range(2)]
    for rules in RULES.names():
        world = DeepRM(CLUSTER, rules)
        for name in HEURISTICS.names():
            schedule = evaluate(get_heuristic(name, world), jobsets, world)
            find_withheld(schedule)
    for observation in OBSERVATIONS.names():
        for mask in MASKS.names():
            _warm_environments(observation, mask)


def _warm_environments(observation: str, mask: str, workload: BimodalWorkload = WORKLOAD) -> None:
    world = DeepRM(workload.cluster)
    single = ClusterEnv(world=world, workload=workload, observation=observation, mask=mask)
    single.reset(seed=0)
    single.step(0)
    several = ClusterVectorEnv(
        2, world=world, workload=workload, observation=observation, mask=mask
    )
    several.reset(seed=0)
    several.step(np.zeros(2, np.int64))
