"""Tasks, distributions over them, and the splits that keep training from what is reported."""

from cluster_env.task import Task
from meta.tasks.distribution import (
    TASK_DISTRIBUTIONS,
    FamilySection,
    TaskDistribution,
    TaskSplit,
    baselines_in,
    get_distribution,
    objective_kind,
    read_family,
    training_tasks,
    warmup_of,
)
from meta.tasks.reading import describe, read_task

__all__ = [
    "TASK_DISTRIBUTIONS",
    "FamilySection",
    "Task",
    "TaskDistribution",
    "TaskSplit",
    "baselines_in",
    "describe",
    "get_distribution",
    "objective_kind",
    "read_family",
    "read_task",
    "training_tasks",
    "warmup_of",
]
