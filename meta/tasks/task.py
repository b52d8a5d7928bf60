"""A task: jobs, a cluster and an objective, with a cost by which schedules are compared."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.core.world import Kind, World, kind_of
from cluster_env.evaluation import Metric, cost_of
from cluster_env.objectives import Objective
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm.cluster import Cluster
from rllib_configs.task_schema import TaskSection


@dataclass(frozen=True)
class Task:
    """What a policy adapts to: a distribution over jobsets, a cluster and an objective.

    Attributes:
        name: what tables call it, as ``objectives:3``.
        section: jobs, cluster, rules and objective.
        seed: of its jobsets, at least 0; tasks with different seeds share none.
    """

    name: str
    section: TaskSection
    seed: int

    def jobsets(self, split: Split, indices: Iterable[int]) -> list[JobSet]:
        """The jobsets of these indices.

        What is adapted on comes from `Split.TRAIN`, and what is reported from `Split.HELD_OUT`.

        Raises:
            InputError: if the task is impossible, or its trace missing or broken.
        """
        return sample_jobsets(self.section.build_workload(), self.seed, split, indices)

    @cached_property
    def cluster(self) -> Cluster:
        """Resources, horizon and slots."""
        return self.section.cluster.build()

    @cached_property
    def world(self) -> World:
        """What the jobs run in."""
        return self.section.build_world()

    @property
    def kind(self) -> Kind:
        """The registration of its world."""
        return kind_of(self.world)

    @cached_property
    def objective(self) -> Objective:
        """What the rewards are."""
        return self.section.build_objective()

    @cached_property
    def metric(self) -> Metric:
        """The cost by which schedules are compared; see `cost_of`."""
        return cost_of(self.objective)


def mean_cost(metric: Metric, schedule: Schedule) -> float:
    """Mean of a metric over all jobs, or episodes, of a schedule; NaN if there are none."""
    values = metric.values(schedule)
    if metric.counts is not None:
        values = values[metric.counts(schedule)]
    return float(values.mean()) if values.size else float("nan")


def describe(section: TaskSection) -> str:
    """What a task is about, in a few words: ``makespan, load 110%``."""
    workload = section.workload
    trace = workload.trace_name
    jobs = f"trace {trace}" if trace else f"load {workload.load:.0%}"
    return f"{objective_name(section)}, {jobs}"


def objective_name(section: TaskSection) -> str:
    """Name of a task's objective; a mixture's lists its parts with their weights."""
    return section.build_objective().name


def objective_kind(section: TaskSection) -> str:
    """What tasks with like objectives share: the name without weights, or ``mixture``."""
    name = objective_name(section)
    kind = name.partition("(")[0]
    return "mixture" if " " in kind else kind
