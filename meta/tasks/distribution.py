"""Distributions over tasks, by name or from a file, and the splits that keep their tasks apart."""

import importlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, Self, runtime_checkable

import numpy as np
from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.spec import WorldSpec, get_heuristic
from cluster_env.evaluation import check_warmup
from cluster_env.task import Task
from rllib_configs.config.extensions import IMPORTS, allowed_imports
from rllib_configs.config.loading import parse_section, read_yaml
from rllib_configs.config.ranges import TaskRanges, ranges_of
from rllib_configs.config.sections import Section, WholeNumber, validated
from rllib_configs.config.task_schema import TaskSection

_FOLDER = Path(__file__).parent / "families"
_OF_JOBSETS = 1  # last key of the stream that a task's seed comes from
_SEED_BOUND = 2**63
_CANDIDATES = 10  # tasks that are drawn for each of a balanced selection
_TRIES = 64  # tasks that are drawn to find out whether a family is possible


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
        """The first tasks, but as many of each kind of objective as of any other, or one more.

        The mean over them estimates the mean over the distribution with less noise than that over
        as many first tasks, if the distribution draws all kinds equally often.
        """
        candidates = [self.task(index) for index in range(_CANDIDATES * count)]
        # The first of each kind come before the second ones, and so on.
        counts: Counter[str] = Counter()
        ranks = []
        for index, task in enumerate(candidates):
            kind = objective_kind(task)
            ranks.append((counts[kind], index))
            counts[kind] += 1
        return [candidates[index] for index in sorted(index for _, index in sorted(ranks)[:count])]


def objective_kind(task: Task) -> str:
    """What tasks with like objectives share: the name without weights, or ``mixture``."""
    kind = task.objective.name.partition("(")[0]
    return "mixture" if " " in kind else kind


class FamilySection(Section):
    """A distribution over tasks that a YAML file can describe; a `TaskDistribution`."""

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$")] = "my-tasks"
    """What tables call it."""
    base: TaskSection = Field(default_factory=TaskSection)
    """The task that the ranges change; also what a run trains on while it warms up."""
    vary: SerializeAsAny[TaskRanges] = Field(default_factory=dict, validate_default=True)
    """What differs: ``workload.load: {uniform: [0.7, 1.5]}`` by the key of any setting, beside the
    ranges that the world has of its own."""
    warmup: WholeNumber = 0
    """Units of time at the beginning and at the end of each arrival window whose jobs count
    nowhere, neither in rewards nor in costs, so that the others meet a cluster in operation."""
    baselines: tuple[str, ...] = ()
    """Heuristics by the best of which costs are divided; unset: the baselines of the world."""

    @field_validator("vary", mode="before")
    @classmethod
    def _with_the_ranges_of_the_world(cls, ranges: Any, info: ValidationInfo) -> Any:
        if not isinstance(ranges, Mapping) or "base" not in info.data:
            return ranges
        return validated(ranges_of(info.data["base"].world.kind), ranges)

    def draw(self, rng: np.random.Generator) -> TaskSection:
        """Draws a task; see `TaskRanges.draw`.

        Raises:
            InputError: if the base is impossible.
        """
        return self.vary.draw(self.base, rng)

    def check(self) -> Self:
        """Makes sure that tasks can be drawn and built.

        Raises:
            InputError: if one is impossible.
        """
        self.vary.check(self.base, self.name)
        base = self.base.build()
        if self.warmup:
            check_warmup(self.warmup, [jobset.window for jobset in base.jobsets(Split.TRAIN, [0])])
        for name in self.baselines:
            get_heuristic(name, base.world)
        if base.at_point() != base:
            raise InputError(
                f"the base of the family '{self.name}' may not vary from jobset to jobset, so give "
                f"the ranges under 'vary' of the family and not under 'base.workload.vary'"
            )
        rng = np.random.default_rng(0)
        for _ in range(_TRIES):
            self.draw(rng).build()
        return self


def read_family(path: Path) -> FamilySection:
    """Reads the YAML file of a family; what it does not give is as in the family under ``like``.

    Raises:
        InputError: if it cannot be read, has an unknown key or an impossible value, or describes
            tasks that are impossible.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path} of a task distribution")
    data = {"name": path.stem, **read_yaml(path)}
    like = data.pop("like", None)
    if like is not None:
        if not isinstance(like, str) or not (_FOLDER / f"{like}.yaml").is_file():
            known = sorted(file.stem for file in _FOLDER.glob("*.yaml"))
            raise InputError(f"{path}: {unknown('family', str(like), known)}")
        data = _merged(read_yaml(_FOLDER / f"{like}.yaml"), data)
    try:
        return parse_section(FamilySection, data).check()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the changes, key by key."""
    merged = dict(base)
    for key, value in changes.items():
        known = merged.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = _merged(known, value)
        merged[key] = value
    return merged


TASK_DISTRIBUTIONS: Registry[TaskDistribution] = Registry("task distribution")
for _path in sorted(_FOLDER.glob("*.yaml")):
    _family = read_family(_path)
    TASK_DISTRIBUTIONS.register(_family.name)(_family)


def get_distribution(name: str | Path) -> TaskDistribution:
    """One of `TASK_DISTRIBUTIONS`, or of a YAML file (`FamilySection`), or ``module:attribute``.

    The package of the latter METASCHED_IMPORTS in the environment has to name.

    Raises:
        InputError: if there is none, or its file or module cannot be used.
    """
    text = str(name)
    if text.endswith((".yaml", ".yml")):
        return read_family(Path(text))
    module, colon, attribute = text.partition(":")
    if not colon:
        if text not in TASK_DISTRIBUTIONS.names():
            error = unknown("task distribution", text, TASK_DISTRIBUTIONS.names())
            raise InputError(f"{error}; a YAML file or module:attribute can be given, too")
        return TASK_DISTRIBUTIONS.get(text)
    # A config runs no code but that of packages which the user has allowed.
    if not any(f"{module}.".startswith(f"{allowed}.") for allowed in allowed_imports()):
        raise InputError(
            f"the task distribution {text} is Python code, which a config must not run by itself; "
            f"if you trust it, set {IMPORTS}={module.partition('.')[0]} in the environment"
        )
    try:
        distribution = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"the task distribution {text} cannot be imported: {error}") from None
    if not isinstance(distribution, TaskDistribution):
        raise InputError(
            f"the task distribution {text} needs a name, a base and a method draw, but is of the "
            f"type {type(distribution).__name__}"
        )
    return distribution


def warmup_of(distribution: TaskDistribution) -> int:
    """Units of time at both ends of its windows whose jobs do not count; 0 if it says nothing."""
    return int(getattr(distribution, "warmup", 0))


def baselines_in(distribution: TaskDistribution, spec: WorldSpec) -> tuple[str, ...]:
    """The heuristics by the best of which costs are divided: its own, else the world's."""
    return tuple(getattr(distribution, "baselines", ())) or tuple(spec.baselines)


def training_tasks(distribution: TaskDistribution, seed: int) -> TaskSplit:
    """The tasks that a run may train on."""
    return TaskSplit(distribution, seed, Split.TRAIN)
