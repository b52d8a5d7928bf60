"""Distributions over tasks, by name or from a file, and the splits that keep their tasks apart."""

import importlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.task import Task
from meta.tasks.family import FamilySection, read_family
from meta.tasks.task import objective_kind
from rllib_configs.extensions import IMPORTS, allowed_imports
from rllib_configs.task_schema import TaskSection

_FOLDER = Path(__file__).parent / "families"
_OF_JOBSETS = 1  # last key of the stream that a task's seed comes from
_SEED_BOUND = 2**63
_LOOKED = 10  # tasks that are drawn for each that is wanted


@runtime_checkable
class TaskDistribution(Protocol):
    """Where tasks come from.

    A distribution of your own is any object with these three. Name it in a config as
    ``my_package.my_module:MY_TASKS``, so that every process of a run finds it (`IMPORTS` must
    name ``my_package``, because a config runs no code by itself), or enter it into
    `TASK_DISTRIBUTIONS`. All its tasks need the same number of resources and job classes and the
    same horizon, because the network's size depends on them; capacities and slots may differ.
    """

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def base(self) -> TaskSection:
        """What a run trains on while it warms up."""

    def draw(self, rng: np.random.Generator) -> TaskSection:
        """Draws a task; the same generator state gives the same task."""


@dataclass(frozen=True)
class TaskSplit:
    """The tasks of one split, by index.

    Everything of a task comes from the random stream of (seed, split, index): neither two splits
    nor two seeds nor two indices share tasks or jobsets.

    Attributes:
        distribution: where the tasks come from.
        seed: of the tasks, at least 0.
        split: what the tasks are for. Training takes `Split.TRAIN` alone (`training_tasks`), inner
            rates and the like are chosen on `Split.VALIDATION`, and `Split.HELD_OUT` is reported.
    """

    distribution: TaskDistribution
    seed: int
    split: Split

    def task(self, index: int) -> Task:
        """The task of an index, at least 0; the same whoever asks.

        Raises:
            InputError: if the index is negative, or the task is impossible.
        """
        if index < 0:
            raise InputError(f"tasks are counted from 0, but {index} was given")
        keys = (self.seed, Purpose.TASK, int(self.split), index)
        section = self.distribution.draw(generator(*keys))
        seed = int(generator(*keys, _OF_JOBSETS).integers(_SEED_BOUND))
        part = "" if self.split is Split.HELD_OUT else f"{self.split.name.lower()}:"
        return section.build(f"{self.distribution.name}:{part}{index}", seed)

    def balanced(self, count: int) -> list[Task]:
        """The first tasks, but as many of each kind of objective as of any other.

        The mean over them estimates the mean over the distribution with less noise than that over
        as many first tasks, if the distribution draws all kinds equally often.

        Args:
            count: how many; where the kinds do not divide it, some have one more than others.
        """
        looked = [self.task(index) for index in range(_LOOKED * count)]
        met: Counter[str] = Counter()
        places = []
        for index, task in enumerate(looked):
            kind = objective_kind(task)
            places.append((met[kind], index))
            met[kind] += 1
        return [looked[index] for index in sorted(index for _, index in sorted(places)[:count])]


TASK_DISTRIBUTIONS: Registry[TaskDistribution] = Registry("task distribution")
for _path in sorted(_FOLDER.glob("*.yaml")):
    _family: FamilySection = read_family(_path)
    TASK_DISTRIBUTIONS.register(_family.name)(_family)


def get_distribution(name: str | Path) -> TaskDistribution:
    """Finds a distribution over tasks.

    Args:
        name: of one in `TASK_DISTRIBUTIONS`, or the path of a YAML file
            (`meta.tasks.family.FamilySection`), or ``module:attribute`` of one in Python,
            whose package METASCHED_IMPORTS in the environment has to name.

    Raises:
        InputError: if there is none, or its file or module cannot be used.
    """
    text = str(name)
    if text.endswith((".yaml", ".yml")):
        return read_family(Path(text))
    if ":" in text:
        return _import(text)
    if text not in TASK_DISTRIBUTIONS.names():
        error = unknown("task distribution", text, TASK_DISTRIBUTIONS.names())
        raise InputError(f"{error}; a YAML file or module:attribute can be given, too")
    return TASK_DISTRIBUTIONS.get(text)


def training_tasks(distribution: TaskDistribution, seed: int) -> TaskSplit:
    """The tasks that a run may train on."""
    return TaskSplit(distribution, seed, Split.TRAIN)


def require_training(tasks: TaskSplit) -> TaskSplit:
    """Makes sure that tasks may be trained on, and returns them.

    Raises:
        InputError: if they are those of another split.
    """
    if tasks.split is not Split.TRAIN:
        raise InputError(
            f"training may use tasks of the split train alone, but tasks of the split "
            f"{tasks.split.name.lower()} were given"
        )
    return tasks


def _import(text: str) -> TaskDistribution:
    module, _, attribute = text.partition(":")
    package = module.partition(".")[0]
    if not any(f"{module}.".startswith(f"{allowed}.") for allowed in allowed_imports()):
        raise InputError(
            f"the task distribution {text} is Python code, which a config must not run by itself; "
            f"if you trust it, set {IMPORTS}={package} in the environment"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"the task distribution {text} cannot be imported: {error}") from None
    if not isinstance(found, TaskDistribution):
        raise InputError(
            f"the task distribution {text} needs a name, a base and a method draw, but is of the "
            f"type {type(found).__name__}"
        )
    return found
