"""A distribution over tiny tasks, found by name in every process of a run."""

from dataclasses import dataclass

import numpy as np

from rllib_configs.task_schema import ClusterSection, TaskSection, WorkloadSection


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
    return TaskSection(
        objective=objective,
        max_time=60,
        cluster=ClusterSection(capacity=(units, units), horizon=5, num_slots=3, backlog_view=5),
        workload=WorkloadSection(
            load=0.8, window=8, small_duration=(1, 2), large_duration=(3, 4), demands="released"
        ),
    )


TINY_TASKS = TinyTasks()
