"""A task: a world, a distribution over its jobsets and an objective."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.seeding import Split
from cluster_env.core.spec import Value, WorldSpec, spec_of
from cluster_env.core.world import World
from cluster_env.objectives import Objective
from cluster_env.workloads import Workload, part_of, sample_jobsets


@dataclass(frozen=True)
class Task:
    """What a policy is trained on, adapted to and evaluated on.

    Attributes:
        world: the machines, and what a policy sees of them.
        workload: where jobsets come from; a frozen dataclass of its settings.
        objective: what the rewards are.
        name: what tables call it, as ``objectives:3``.
        seed: of its jobsets, at least 0; tasks with different seeds share none.
    """

    world: World
    workload: Workload
    objective: Objective
    name: str = "task"
    seed: int = 0

    @property
    def spec(self) -> WorldSpec:
        """The registration of its world."""
        return spec_of(self.world)

    def jobsets(self, split: Split, indices: Iterable[int]) -> list[JobSet]:
        """The jobsets of these indices.

        What is learned from comes from `Split.TRAIN`, numbers are chosen on `Split.VALIDATION`, and
        what is reported comes from `Split.HELD_OUT`.

        Raises:
            InputError: if a trace is missing or broken, or the split is no `Split`.
        """
        given: object = split
        if not isinstance(given, Split):
            known = ", ".join(f"Split.{one.name}" for one in Split)
            raise InputError(f"a split is one of {known}, but {given!r} was given")
        return sample_jobsets(self.workload, self.seed, split, indices)

    def columns(self) -> dict[str, Value]:
        """The head of a table's rows: what is to be known of the task."""
        return dict(self.spec.presentation.columns(self))

    @property
    def has_axis(self) -> bool:
        """Whether it has the setting that comparisons vary; recorded jobs do not."""
        axis = self.spec.presentation.axis
        if axis is None:
            return False
        part, _, name = axis.key.partition(".")
        return name in {entry.name for entry in fields(getattr(self, part))}

    @cached_property
    def position(self) -> float:
        """Where it stands on the axis of comparisons; measured, where that is no setting.

        NaN in a world without an axis, or for a workload that does not know it.
        """
        return self.position_on(Split.HELD_OUT)

    def position_on(self, split: Split) -> float:
        """Where its jobsets of a split stand on the axis, see `position`."""
        axis = self.spec.presentation.axis
        if axis is None:
            return float("nan")
        in_workload = axis.key.startswith("workload.")
        source: Any = part_of(self.workload, split) if in_workload else self.world
        return float(getattr(source, axis.name, float("nan")))

    def at(self, value: float, cap: bool = False) -> "Task":
        """The task at a place of the axis, with jobs that do not vary from jobset to jobset.

        With `cap`, a value beyond reach becomes the largest that can be reached.

        Raises:
            InputError: if there is no such setting, or it cannot have the value.
        """
        axis = self.spec.presentation.axis
        if axis is None or not self.has_axis:
            raise InputError(
                f"the jobs of this task are fixed, so their {axis.key if axis else 'value'} "
                "cannot be changed"
            )
        task = self.at_point()
        part, _, name = axis.key.partition(".")
        used = min(value, axis.reach(task)) if cap else value
        changed: Any = replace(getattr(task, part), **{name: used})
        return replace(task, **{part: changed})

    def at_point(self) -> "Task":
        """The task with jobs that do not vary from jobset to jobset."""
        point = getattr(self.workload, "point", None)
        return self if point is None else replace(self, workload=point())


def build_workload(world: World, name: str, options: Mapping[str, Any]) -> Workload:
    """Builds a workload of a world by name, with those fields that the world does not decide.

    Raises:
        InputError: for an unknown name or option, or an impossible value.
    """
    kinds = spec_of(world).workloads
    spec = kinds.get(name)
    decided = dict(spec.from_world(world))
    known = [name for name in spec.names if name not in decided]
    for option in options:
        if option not in known:
            if option in kinds.names():
                own = kinds.get(option).names
                raise InputError(f"{option} is a kind of workload: kind={option} with {own[0]}=...")
            raise unknown("option of the workload", option, known)
    workload: Workload = spec.workload(**{**decided, **options})
    return workload
