"""Tasks, distributions over them, and the splits that keep training from what is reported."""

from cluster_env.core.task import Task
from cluster_env.evaluation import cost_of
from meta.tasks.distribution import (
    TASK_DISTRIBUTIONS,
    TaskDistribution,
    TaskSplit,
    get_distribution,
    require_training,
    training_tasks,
)
from meta.tasks.family import FamilySection, read_family
from meta.tasks.reading import read_task
from meta.tasks.task import describe, mean_cost, objective_kind, objective_name

__all__ = [
    "TASK_DISTRIBUTIONS",
    "FamilySection",
    "Task",
    "TaskDistribution",
    "TaskSplit",
    "cost_of",
    "describe",
    "get_distribution",
    "mean_cost",
    "objective_kind",
    "objective_name",
    "read_family",
    "read_task",
    "require_training",
    "training_tasks",
]
