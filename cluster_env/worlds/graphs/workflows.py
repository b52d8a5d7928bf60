"""Graphs of scientific workflows, in WfFormat (wfcommons.org).

One JSON file is one workflow: tasks that each ran once, with their parents. As
``workflow.specification.tasks`` and ``workflow.execution.tasks`` (version 1.5), or all in
``workflow.tasks`` (1.3 and 1.4; older ones call it ``jobs``).

A job's stages here are groups of tasks: those of one category that stand equally deep in the graph
become tasks of one stage, and last as long as they did in the mean. So a task waits for all of the
groups of its parents.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.graphs import MOST_STAGES, Stages
from cluster_env.worlds.graphs.tables import reading

_ID = re.compile(r"[_-]?(ID)?\d+$")


@lru_cache(maxsize=4)
def read_workflows(path: str) -> Stages:
    """The stages of the workflow of a file, or of all ``.json`` files of a folder.

    Raises:
        InputError: if there is none, or one cannot be read or has too many stages.
    """
    files = sorted(Path(path).glob("*.json")) if Path(path).is_dir() else [Path(path)]
    if not files:
        raise InputError(f"{path} holds no workflows, files that end in .json")
    every = []
    for file in files:
        with reading(file, "workflow in WfFormat") as data:
            every.append(_stages(data["workflow"]))
    width = max(stages.tasks.shape[1] for stages in every)
    wide = [stages.resized(width) for stages in every]
    return Stages(*map(np.concatenate, zip(*wide, strict=True)))


def _stages(workflow: Mapping[str, Any]) -> Stages:
    """The stages of one workflow; each part has one row."""
    specified = workflow.get("specification", workflow)
    tasks = {
        str(task.get("id", task["name"])): dict(task)
        for task in specified.get("tasks", specified.get("jobs"))
    }
    for run in workflow.get("execution", {}).get("tasks", ()):
        tasks[str(run["id"])].update(run)
    names = {str(task["name"]): key for key, task in tasks.items()}
    parents = {
        key: [one if one in tasks else names[one] for one in map(str, task.get("parents", ()))]
        for key, task in tasks.items()
    }
    depth = _depths(parents)
    group = {key: (depth[key], _category(task)) for key, task in tasks.items()}
    stages = {one: number for number, one in enumerate(sorted(set(group.values())))}
    if len(stages) > MOST_STAGES:
        raise ValueError(f"{len(stages)} stages, and at most {MOST_STAGES} can be simulated")
    number = np.array([stages[group[key]] for key in tasks])
    count = np.bincount(number)
    time = np.bincount(number, [_milliseconds(task) for task in tasks.values()]) / count
    bits: NDArray[np.int64] = np.zeros(len(stages), np.int64)
    for key, above in parents.items():
        for one in above:
            bits[stages[group[key]]] |= np.int64(1) << stages[group[one]]
    return Stages(count[None], np.maximum(time, 1.0)[None], bits[None])


def _depths(parents: Mapping[str, list[str]]) -> dict[str, int]:
    """How many tasks stand above each on the longest path."""
    depth: dict[str, int] = {}
    left = dict(parents)
    while left:
        free = [key for key, above in left.items() if all(one in depth for one in above)]
        if not free:
            raise ValueError(f"the parents of {next(iter(left))} wait for it")
        level = {key: 1 + max((depth[one] for one in left[key]), default=-1) for key in free}
        depth |= level
        left = {key: above for key, above in left.items() if key not in level}
    return depth


def _category(task: Mapping[str, Any]) -> str:
    """What a task is one of many of: its category, or its name without a number."""
    return str(task.get("category") or _ID.sub("", str(task["name"])))


def _milliseconds(task: Mapping[str, Any]) -> float:
    seconds = float(task["runtimeInSeconds"] if "runtimeInSeconds" in task else task["runtime"])
    if not 0 <= seconds <= 1e8:
        raise ValueError(f"a task that runs for {seconds:g} s")
    return 1000.0 * seconds
