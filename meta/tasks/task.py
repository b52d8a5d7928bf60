"""Costs and descriptions of tasks."""

from cluster_env.core.schedule import Schedule
from cluster_env.core.task import Task
from cluster_env.evaluation import Metric
from cluster_env.evaluation.summary import is_measured


def mean_cost(metric: Metric, schedule: Schedule) -> float:
    """Mean of a metric over all jobs that count, or episodes, of a schedule; NaN if none do."""
    values = metric.values(schedule)
    if metric.per == "job":
        kept = is_measured(schedule, 0)
        values = values[kept if metric.counts is None else kept & metric.counts(schedule)]
    elif metric.counts is not None:
        values = values[metric.counts(schedule)]
    return float(values.mean()) if values.size else float("nan")


def describe(task: Task) -> str:
    """What a task is about, in a few words: ``makespan, load 110%``."""
    return f"{objective_name(task)}, {task.spec.presentation.words(task)}"


def objective_name(task: Task) -> str:
    """Name of a task's objective; a mixture's lists its parts with their weights."""
    return task.objective.name


def objective_kind(task: Task) -> str:
    """What tasks with like objectives share: the name without weights, or ``mixture``."""
    kind = task.objective.name.partition("(")[0]
    return "mixture" if " " in kind else kind
