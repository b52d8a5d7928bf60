"""A task: jobs, a cluster and an objective, with a cost by which schedules are compared."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.core.world import Kind, World, kind_of
from cluster_env.evaluation import METRICS, Metric, objective_metric
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


def cost_of(objective: Objective) -> Metric:
    """The metric of an objective, turned where need be so that lower is better and none is below 0.

    A cost of zero is possible only where nothing waits at all; quotients of costs then mean
    nothing.

    * utilization: the idle share of the cluster inside the arrival window, 1 less it;
    * an objective with a gain from utilization beside other terms: what an episode costs
      (`cluster_env.evaluation.metrics.cost_metric`), plus the gain of a window in full use, which
      no policy can change; so the idle share costs what its use would gain;
    * any other: the metric of its name, or what an episode costs.
    """
    metric = objective_metric(objective)
    if metric.higher_is_better:
        return METRICS.get("idle")
    if objective.utilization_gain and metric.per == "episode":
        gain = objective.utilization_gain

        def shifted(schedule: Schedule) -> NDArray[np.float64]:
            return metric.values(schedule) + gain * schedule.window

        return replace(metric, values=shifted)
    return metric


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
