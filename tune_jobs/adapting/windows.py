"""The windows that adaptation is made and measured in: those of a comparison."""

from collections.abc import Sequence
from dataclasses import replace

from cluster_env.core.task import Task
from meta.tasks import read_task
from rllib_configs.changes import changed_keys
from rllib_configs.task_schema import TaskSection
from tune_jobs.comparing.choices import steady_operation


def in_steady_operation(task: Task, texts: Sequence[str]) -> tuple[Task, int]:
    """A task in the windows that a comparison takes, so that costs can be compared with its own.

    Args:
        task: as asked for.
        texts: how it was asked for, see `meta.tasks.read_task`; who names the length of windows
            gets them so.

    Returns:
        The task, and a warm-up: units of time at both ends of a window whose jobs do not count.
    """
    said = changed_keys([f"task.{text}" for text in texts if "=" in text])
    steady, warmup = steady_operation(task, said)
    if not steady:
        return task, warmup
    changes = [
        f"{task.spec.presentation.options[name].key}={value}" for name, value in steady.items()
    ]
    return replace(read_task(changes, TaskSection.of(task), task.seed), name=task.name), warmup
