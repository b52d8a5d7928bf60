"""Costs and descriptions of tasks."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.schedule import Schedule
from cluster_env.core.task import Task
from cluster_env.evaluation import METRICS, Metric, objective_metric
from cluster_env.objectives import Objective


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


def describe(task: Task) -> str:
    """What a task is about, in a few words: ``makespan, load 110%``."""
    return f"{objective_name(task)}, {task.kind.words(task)}"


def objective_name(task: Task) -> str:
    """Name of a task's objective; a mixture's lists its parts with their weights."""
    return task.objective.name


def objective_kind(task: Task) -> str:
    """What tasks with like objectives share: the name without weights, or ``mixture``."""
    kind = task.objective.name.partition("(")[0]
    return "mixture" if " " in kind else kind
