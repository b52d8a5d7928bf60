"""Short texts that differ when anything differs that measured numbers depend on."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.task import Task
from cluster_env.workloads.shipped import find_log
from rllib_configs.config.extensions import allowed_imports
from rllib_configs.config.task_schema import TaskSection
from tune_jobs.measuring import protocol
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.terminal.files import digest
from tune_jobs.tracking.provenance import made_with

_DECIDE = (
    *("cluster_env", "rllib_configs", "meta"),
    *("tune_jobs/measuring", "tune_jobs/adapting", "tune_jobs/recipes", "tune_jobs/replaying"),
)
"""Packages whose code decides what is measured."""


def fingerprint(*parts: object, weights: Mapping[str, NDArray[Any]] | None = None) -> str:
    """A digest of plain data, of the weights of a policy, and of the program.

    The program is its code and the versions that it runs with, whatever commit it stands in.
    """
    made = {name: text for name, text in made_with().items() if not name.startswith("git.")}
    known = sha256(json.dumps([_sources(), made, parts], sort_keys=True, default=str).encode())
    for name, values in sorted((weights or {}).items()):
        known.update(name.encode())
        known.update(np.ascontiguousarray(values).tobytes())
    return known.hexdigest()


def task_as_data(task: Task) -> list[Any]:
    """What a task is, as plain data; files count by what is in them, wherever they lie.

    Raises:
        InputError: if no config could say it.
    """
    return [_with_files(TaskSection.of(task).model_dump(mode="json")), task.seed]


def _with_files(data: Any) -> Any:
    """Settings, with a digest in place of each text that names a file."""
    if isinstance(data, dict):
        return {name: _with_files(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_with_files(value) for value in data]
    return (isinstance(data, str) and len(data) < 4096 and digest(find_log(data))) or data


def fingerprint_of(place: EvaluationProtocol, specs: Sequence[PolicySpec], *more: object) -> str:
    """That of policies in a protocol; empty where a name does not say what the task or one is.

    What else the numbers depend on is plain data.
    """
    if not all(spec.named for spec in specs):
        return ""
    try:
        task = task_as_data(place.task)
    except InputError:
        return ""
    numbers = [getattr(place, one.name) for one in fields(place) if one.name != "task"]
    policies = [[spec.key, *(run.content() for run in spec.runs)] for spec in specs]
    return fingerprint(task, numbers, protocol.NUM_TUNING_JOBSETS, policies, more)


@cache
def _sources() -> str:
    """A digest of the code that numbers depend on, that of extensions included."""
    root = Path(__file__).parents[2]
    files = [path for name in _DECIDE for path in sorted((root / name).rglob("*.py"))]
    return sha256("".join(map(digest, [*files, *_extensions()])).encode()).hexdigest()


def _extensions() -> Iterator[Path]:
    """Files of the modules and packages that a user has named."""
    for name in allowed_imports():
        file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
        yield from sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
