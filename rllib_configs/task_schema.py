"""The part of the config that says what is learned: world, jobs and objective."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.core.spec import WorldSpec
from cluster_env.core.task import Task
from cluster_env.core.world import World
from cluster_env.objectives import Objective, get_objective, mixture
from cluster_env.workloads import Workload
from cluster_env.worlds import WORLDS
from rllib_configs.sections import (
    DerivedSection,
    Section,
    SectionError,
    WholeNumber,
    refused,
    section_of,
    validated,
)


class TaskSection(Section):
    """What is learned: a world, its jobs and an objective.

    World and workload are tables with the key ``kind``; the other keys are the fields of the
    dataclass of that name. From Python, the dataclasses themselves can be given.
    """

    world: SerializeAsAny[DerivedSection] = Field(default_factory=dict, validate_default=True)
    """What the jobs run in, one of `cluster_env.worlds`; by default the first of them."""
    workload: SerializeAsAny[DerivedSection] = Field(default_factory=dict, validate_default=True)
    """Where the jobs come from, one of the world's workloads; by default its first."""
    objective: str | dict[str, WholeNumber | float] = Field(
        default_factory=lambda given: _usual_objective(given.get("world"))
    )
    """Name of an objective (`cluster_env.objectives`), or weights of several by name; by default
    slowdown, in the world hpc bounded_slowdown. A mixture is validated and compared by what an
    episode costs, minus its return. Where jobs have classes, class_slowdown(0.1, 1, 10) is the
    slowdown with a weight for each class."""

    @field_validator("world", mode="before")
    @classmethod
    def _choose_world(cls, given: Any) -> Any:
        """The settings of the kind that is named."""
        if isinstance(given, DerivedSection):
            return given
        if hasattr(given, "kind"):
            return section_of(type(given), given.kind).of(given)
        name = _name_of(given, WORLDS.names()[0])
        try:
            section = section_of(WORLDS.get(name).world, name)
        except InputError as error:
            raise refused(SectionError(("kind",), str(error))) from None
        world: DerivedSection = validated(section, given)
        try:
            world.build()  # its workloads depend on it
        except SectionError as error:
            raise refused(error) from None
        return world

    @field_validator("workload", mode="before")
    @classmethod
    def _choose_workload(cls, given: Any, info: ValidationInfo) -> Any:
        """The settings of the kind that is named, but for what the world decides."""
        world = info.data.get("world")
        if isinstance(given, DerivedSection) or world is None:
            return given
        built, spec = world.build(), WORLDS.get(world.kind)
        if not isinstance(given, Mapping):
            return _workload_section(built, spec, _kind_of_workload(spec, given)).of(given)
        try:
            name = spec.workloads.today(_name_of(given, spec.workloads.names()[0]))
            section = _workload_section(built, spec, name)
        except InputError as error:
            raise refused(SectionError(("kind",), str(error))) from None
        return validated(section, {**given, "kind": name})

    @classmethod
    def of(cls, task: Task) -> Self:
        """The settings of a task; `build` makes its equal from them.

        Raises:
            InputError: if its world, workload or objective has no name that a config could say.
        """
        get_objective(task.objective.name)
        _kind_of_workload(task.spec, task.workload)
        return cls.model_validate(
            {"world": task.world, "workload": task.workload, "objective": task.objective.name}
        )

    def build(self, name: str = "task", seed: int = 0) -> Task:
        """The task that the section describes.

        Args:
            name: what tables call it.
            seed: of its jobsets, at least 0.

        Raises:
            InputError: if it is impossible, or its jobs are in a file that is missing or broken.
        """
        world = self.build_world()
        task = Task(world, self._workload_on(world), self.build_objective(), name, seed)
        try:
            task.spec.training.check_task(task)
        except InputError as error:
            raise InputError(f"task: {error}") from None
        return task

    def build_world(self) -> World:
        """What the jobs run in.

        Raises:
            InputError: if it is impossible.
        """
        try:
            world: World = self.world.build()
        except SectionError as error:
            raise error.inside("task", "world") from None
        return world

    def build_workload(self) -> Any:
        """The workload.

        Raises:
            InputError: as from `build`.
        """
        return self.build().workload

    def build_objective(self) -> Objective:
        """The objective by name, or the weighted sum of several.

        Raises:
            InputError: if it is unknown, or its weights cannot be used.
        """
        try:
            if isinstance(self.objective, str):
                return _objective(self.objective)
            return mixture(self.objective)
        except InputError as error:
            raise InputError(f"task.objective: {error}") from None

    def at_point(self) -> Self:
        """The task with jobs that do not vary from jobset to jobset; see `Task.at_point`."""
        if not hasattr(self.workload.origin[0], "point"):
            return self
        world = self.build_world()
        spec, point = WORLDS.get(self.world.kind), self.build_workload().point()
        section = _workload_section(world, spec, _kind_of_workload(spec, point))
        return self.model_copy(update={"workload": section.of(point)})

    def _workload_on(self, world: World) -> Workload:
        given = WORLDS.get(self.world.kind).workloads.get(self.workload.kind).from_world(world)
        try:
            workload: Workload = self.workload.build(given)
        except SectionError as error:
            raise error.inside("task", "workload") from None
        return workload


def _usual_objective(world: Any) -> str:
    """What is learned in a world, if nobody says it; of one that was refused, anything."""
    return WORLDS.get(WORLDS.names()[0] if world is None else world.kind).training.objective


@lru_cache(maxsize=1024)
def _objective(name: str) -> Objective:
    """One object for one name, so that tasks can be compared."""
    return get_objective(name)


def _workload_section(world: World, spec: WorldSpec, name: str) -> type[DerivedSection]:
    entry = spec.workloads.get(name)
    return section_of(entry.workload, name, frozenset({*entry.from_world(world), *entry.refused}))


def _kind_of_workload(spec: WorldSpec, workload: Any) -> str:
    """Name of a workload's kind among those of a world."""
    for name in spec.workloads.names():
        if type(workload) is spec.workloads.get(name).workload:
            return name
    raise InputError(
        f"a config cannot name a {type(workload).__name__}, because the world has no such "
        f"workload; it has {', '.join(spec.workloads.names())}"
    )


def _name_of(given: Any, default: str) -> str:
    if not isinstance(given, Mapping):
        raise PydanticCustomError("table", "input should be a table of settings")
    name = given.get("kind", default)
    if not isinstance(name, str):
        raise refused(SectionError(("kind",), f"input should be a name, but {name!r} was given"))
    return name
