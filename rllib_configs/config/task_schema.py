"""The part of the config that says what is learned: world, jobs and objective."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Self

from pydantic import (
    Field,
    SerializationInfo,
    SerializeAsAny,
    ValidationInfo,
    field_serializer,
    field_validator,
)
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.core.spec import WorldSpec
from cluster_env.core.world import World
from cluster_env.objectives import Objective, get_objective, mixture
from cluster_env.task import Task
from cluster_env.worlds import WORLDS
from rllib_configs.config.sections import (
    DerivedSection,
    Section,
    WholeNumber,
    refusing,
    refusing_choice,
    section_of,
    validated,
)


class TaskSection(Section):
    """What is learned: a world, its jobs and an objective.

    World and workload are tables with the key ``kind``; the other keys are the fields of the
    dataclass of that name. From Python, the dataclasses themselves can be given. The world is built
    once, with the section; the workload where it is asked for, as its file may be elsewhere.
    """

    world: Any = Field(default_factory=dict, validate_default=True)
    """What the jobs run in, one of `cluster_env.worlds`; by default the first of them."""
    workload: SerializeAsAny[DerivedSection] = Field(default_factory=dict, validate_default=True)
    """Where the jobs come from, one of the world's workloads; by default its first."""
    objective: str | dict[str, WholeNumber | float] = Field(
        # Of a world that was refused, anything.
        default_factory=lambda data: (
            WORLDS.get(getattr(data.get("world"), "kind", WORLDS.names()[0])).training.objective
        )
    )
    """Name of an objective (`cluster_env.objectives`), or a table of weights of several. By default
    slowdown, in the world hpc bounded_slowdown. A mixture is validated and compared by the cost of
    an episode, minus its return. class_slowdown(0.1, 1, 10) is the slowdown with a weight for each
    class of jobs."""

    @field_validator("world", mode="before")
    @classmethod
    def _build_the_chosen_world(cls, world: Any) -> Any:
        if hasattr(world, "kind"):
            return world
        name = _name_of(world, WORLDS.names()[0])
        with refusing_choice("kind"):
            section = section_of(WORLDS.get(name).world, name)
        return validated(section, world).build()

    @field_validator("workload", mode="before")
    @classmethod
    def _choose_workload(cls, workload: Any, info: ValidationInfo) -> Any:
        """The settings of the kind that is named, but for what the world decides."""
        world = info.data.get("world")
        if isinstance(workload, DerivedSection) or world is None:
            return workload
        spec = WORLDS.get(world.kind)
        if is_dataclass(workload):
            return workload_section(world, _kind_of_workload(spec, workload)).of(workload)
        with refusing_choice("kind"):
            name = _name_of(workload, spec.workloads.names()[0])
            section = workload_section(world, name)
        return validated(section, {**workload, "kind": name})

    @field_serializer("world")
    def _write_world(self, world: World, info: SerializationInfo) -> dict[str, Any]:
        return section_of(type(world), world.kind).of(world).model_dump(mode=info.mode)

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

    @property
    def read_log(self) -> Callable[[Mapping[str, Any]], Any] | None:
        """Reads the job log that the workload names, from its plain settings; None without one."""
        return WORLDS.get(self.world.kind).workloads.get(self.workload.kind).read

    def build(self, name: str = "task", seed: int = 0) -> Task:
        """The task that the section describes.

        Args:
            name: what tables call it.
            seed: of its jobsets, at least 0.

        Raises:
            InputError: if it is impossible, or its jobs are in a file that is missing or broken.
        """
        with refusing("task.workload"):
            decided = WORLDS.get(self.world.kind).workloads.get(self.workload.kind).from_world
            workload = self.workload.build(decided(self.world))
        task = Task(self.world, workload, self.build_objective(), name, seed)
        with refusing("task"):
            task.spec.training.check_task(task)
        return task

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
        with refusing("task.objective"):
            if isinstance(self.objective, str):
                return _objective(self.objective)
            return mixture(self.objective)

    def at_point(self) -> Self:
        """The task with jobs that do not vary from jobset to jobset; see `Task.at_point`."""
        if not hasattr(self.workload.origin[0], "point"):
            return self
        point = self.build_workload().point()
        section = workload_section(
            self.world, _kind_of_workload(WORLDS.get(self.world.kind), point)
        )
        return self.model_copy(update={"workload": section.of(point)})


@lru_cache(maxsize=1024)
def _objective(name: str) -> Objective:
    """One object for one name, so that tasks can be compared."""
    return get_objective(name)


def workload_section(world: World, name: str) -> type[DerivedSection]:
    """The settings of a workload of a world, by its name: its fields that nothing else decides."""
    entry = WORLDS.get(world.kind).workloads.get(name)
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


def _name_of(table: Any, default: str) -> str:
    """What a table chooses by its key ``kind``."""
    if not isinstance(table, Mapping):
        raise PydanticCustomError("table", "input should be a table of settings")
    name = table.get("kind", default)
    if not isinstance(name, str):
        with refusing_choice("kind"):
            raise InputError(f"input should be a name, but {name!r} was given")
    return name
