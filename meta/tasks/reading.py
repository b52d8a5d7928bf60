"""From what a user writes to a task: a held-out one of a family, a file, or single settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.tasks.distribution import TaskSplit, get_distribution
from meta.tasks.task import Task
from rllib_configs.loading import change, forget_made_up_jobs, parse_section, read_yaml
from rllib_configs.task_schema import TaskSection

_TRACE = "workload.trace"
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
    named = [text for text in texts if "=" not in text]
    if not texts or len(named) > 1:
        given = " and ".join(f"'{text}'" for text in named) or "nothing"
        raise InputError(f"a task is named once, for instance {_SAMPLE}, but {given} was given")
    task = _named(named[0], home, seed) if named else Task("my task", home, seed)
    data = task.section.model_dump(mode="json")
    changes = [text for text in texts if text not in named]
    change(data, changes, _TRACE)
    section = parse_section(TaskSection, data)
    section.build_objective()
    section.cluster.build()
    section.build_workload()
    name = f"{task.name}, changed" if named and changes else task.name
    return Task(name, section, task.seed)


def _named(text: str, home: TaskSection, seed: int) -> Task:
    """The task that a text names."""
    if text.endswith((".yaml", ".yml")):
        path = Path(text)
        if not path.is_file():
            raise InputError(f"there is no file {path} of a task")
        return Task(path.stem, _from_file(path, home), seed)
    family, colon, index = text.rpartition(":")
    if not colon or not index.isdecimal():
        raise InputError(f"a task is named as in {_SAMPLE}, but '{text}' was given")
    return TaskSplit(get_distribution(family), 0, Split.HELD_OUT).task(int(index))


def _from_file(path: Path, home: TaskSection) -> TaskSection:
    """The home task with the settings of a file; a relative trace lies beside the file."""
    given = read_yaml(path)
    data = home.model_dump(mode="json")
    workload = given.get("workload")
    if isinstance(workload, Mapping) and workload.get("trace") is not None:
        forget_made_up_jobs(data, _TRACE)
        beside = path.parent / Path(str(workload["trace"])).expanduser()
        given = {**given, "workload": {**workload, "trace": str(beside)}}
    try:
        return parse_section(TaskSection, _merged(data, given))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _merged(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key, and all else is replaced."""
    merged = dict(data)
    for key, value in given.items():
        before = merged.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping) and key != "objective"
        merged[key] = _merged(before, value) if both else value  # type: ignore[arg-type]
    return merged
