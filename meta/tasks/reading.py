"""From what a user writes to a task, and from a task to words."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.task import Task
from meta.tasks.distribution import TaskSplit, get_distribution
from rllib_configs.config.changes import change, changed_keys, flattened, parse_override
from rllib_configs.config.loading import parse_section, read_yaml
from rllib_configs.config.machines import machine_changes
from rllib_configs.config.task_schema import TaskSection

_SAMPLE = "objectives:3, my_task.yaml, or objective=makespan"


def read_task(texts: Sequence[str], home: TaskSection, seed: int = 0) -> Task:
    """Reads a task.

    Args:
        texts: at most one of them names a task, as ``FAMILY:INDEX`` (a held-out task of a
            distribution over tasks) or as the path of a YAML file with settings of `TaskSection`;
            all others change it, as ``workload.load=1.1``. At least one text.
        home: the task whose settings count where a file or the changes say nothing, usually that
            which a policy was trained on.
        seed: of the jobsets of a task that is not one of a family.

    Raises:
        InputError: if a text cannot be read, or the task is impossible.
    """
    if seed < 0:
        raise InputError(f"a seed must be 0 or larger, but {seed} was given")
    named = [text for text in texts if "=" not in text]
    if not texts or len(named) > 1:
        names = " and ".join(f"'{text}'" for text in named) or "nothing"
        raise InputError(f"a task is named once, for instance {_SAMPLE}, but {names} was given")
    changes = {
        f"task.{key}": value
        for key, value in (parse_override(text) for text in texts if text not in named)
    }
    if not named:
        return _changed(home, changes).build("my task", seed)
    if named[0].endswith((".yaml", ".yml")):
        path = Path(named[0])
        task = _section_of(path, home).build(path.stem, seed)
    else:
        family, colon, index = named[0].rpartition(":")
        if not colon or not index.isdecimal():
            raise InputError(f"a task is named as in {_SAMPLE}, but '{named[0]}' was given")
        task = TaskSplit(get_distribution(family), 0, Split.HELD_OUT).task(int(index))
    if not changes:
        return task
    return _changed(TaskSection.of(task), changes).build(f"{task.name}, changed", task.seed)


def _section_of(path: Path, home: TaskSection) -> TaskSection:
    """The home task with the settings of a file; a relative trace lies beside the file."""
    if not path.is_file():
        raise InputError(f"there is no file {path} of a task")
    try:
        settings = {"task": read_yaml(path)}
        workload: Any = settings["task"].get("workload")
        for key in {"path", "trace"} & set(workload if isinstance(workload, dict) else ()):
            workload[key] = str(path.parent / Path(str(workload[key])).expanduser())
        return _changed(home, flattened(settings))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _changed(home: TaskSection, changes: Mapping[str, Any]) -> TaskSection:
    """A task with other settings, by keys like ``task.workload.load``."""
    data = {"task": home.model_dump(mode="json")}
    before = deepcopy(data["task"])
    change(data, changes)
    # A log brings the size of its machine along, unless that was changed as well.
    section, option = parse_section(TaskSection, data["task"]), "--task world.{name}={units}"
    if section.read_log is None:
        return section
    given = changed_keys(changes)
    change(data, machine_changes(section, section.read_log, before, given, option))
    return parse_section(TaskSection, data["task"])


def describe(task: Task) -> str:
    """What a task is about, in a few words: ``makespan, load 110%``."""
    return f"{task.objective.name}, {task.spec.presentation.words(task)}"
