"""A distribution over tiny tasks, found by name in every process of a run."""

from dataclasses import dataclass

import numpy as np

from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.config.task_schema import TaskSection


@dataclass(frozen=True)
class TinyTasks:
    """Clusters of two capacities, three objectives, windows of eight steps."""

    name: str = "tiny"

    @property
    def base(self) -> TaskSection:
        return _section(4, "slowdown")

    def draw(self, rng: np.random.Generator) -> TaskSection:
        objectives = ("slowdown", "completion_time", "utilization")
        return _section(4 + 2 * int(rng.integers(2)), objectives[int(rng.integers(3))])


def _section(units: int, objective: str) -> TaskSection:
    cluster = Cluster((units, units), horizon=5, num_slots=3, backlog_view=5)
    return TaskSection(
        world=DeepRM(cluster, max_time=60),
        workload=BimodalWorkload(
            load=0.8, window=8, cluster=cluster, small_duration=(1, 2), large_duration=(3, 4)
        ),
        objective=objective,
    )


TINY_TASKS = TinyTasks()
