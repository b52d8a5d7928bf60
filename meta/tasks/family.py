"""Families of tasks: a base task, and the ranges that tasks are drawn from."""

import math
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.objectives.classes import class_slowdown_name
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.loading import parse_section, read_yaml
from rllib_configs.task_schema import (
    Count,
    Positive,
    Section,
    Share,
    TaskSection,
    WholeNumber,
    WorkloadSection,
)

T = TypeVar("T")

Burstiness = Annotated[float, Field(ge=0, lt=1)]

_CLASS_SLOWDOWN = "class_slowdown"
_LOW_LOAD = 1e-6  # for a workload whose highest load is asked for before its load is known
_TRIES = 64  # tasks that are drawn to find out whether a family is possible
_DRAWS = (
    "objective",
    "load",
    "window",
    "small_share",
    "small_low",
    "small_high",
    "large_low",
    "large_high",
    "dominant",
    "bursts",
)


class RangesSection(Section):
    """What differs from task to task; what has no range stays as in the base."""

    objectives: tuple[str | dict[str, WholeNumber | float], ...] = ()
    """Objectives to choose from, all equally often: names, or weights of several by name. With
    `class_weight`, class_slowdown without weights gets those that are drawn."""
    load: tuple[Positive, Positive] | None = None
    """Lowest and highest load, drawn uniformly; one that a task's mix of jobs cannot reach becomes
    the highest that it can."""
    window: tuple[Count, ...] = ()
    """Arrival windows to choose from, in time steps."""
    small_share: tuple[Share, Share] | None = None
    """Lowest and highest share of short jobs, drawn uniformly."""
    small_duration: tuple[Count, Count] | None = None
    """Shortest and longest duration of short jobs; a task draws the two ends of its range from
    here."""
    large_duration: tuple[Count, Count] | None = None
    """Likewise of long jobs."""
    capacity: tuple[Count, Count] | None = None
    """Smallest and largest capacity, drawn for each resource by itself."""
    dominant_share: tuple[Share, Share] | None = None
    """Lowest and highest share of jobs whose dominant resource is the first, drawn uniformly; the
    other resources share the rest evenly."""
    burstiness: tuple[Burstiness, Burstiness] | None = None
    """From arrivals that are independent (0) to such that come in bursts, drawn uniformly."""
    class_weight: tuple[Positive, Positive] | None = None
    """Lowest and highest weight of a class of jobs, drawn for each class uniformly on a logarithmic
    scale; the objective is then class_slowdown with these weights, or, if `objectives` are given,
    it is where class_slowdown is drawn from them."""

    @model_validator(mode="after")
    def _refuse_empty_ranges(self) -> Self:
        for name, value in self:
            if name in ("objectives", "window") or value is None or value[0] <= value[1]:
                continue
            raise PydanticCustomError(
                "empty_range",
                "a range goes from the lower to the higher value, but {name} goes from {low} to "
                "{high}",
                {"name": name, "low": value[0], "high": value[1]},
            )
        return self


class FamilySection(Section):
    """A distribution over tasks that a YAML file can describe; a `TaskDistribution`."""

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$")] = "my-tasks"
    """What tables call it."""
    base: TaskSection = TaskSection()
    """The task that the ranges change; also what a run trains on while it warms up."""
    vary: RangesSection = RangesSection()

    def draw(self, rng: np.random.Generator) -> TaskSection:
        """Draws a task.

        It takes the same numbers from the generator whatever varies, so that a range more or less
        leaves the other draws as they are.

        Raises:
            InputError: if the base is impossible.
        """
        place = dict(zip(_DRAWS, rng.random(len(_DRAWS)).tolist(), strict=True))
        capacities = rng.random(len(self.base.cluster.capacity))
        classes = rng.random(self.base.cluster.num_classes)
        changes: dict[str, Any] = {"objective": self._objective(place["objective"], classes)}
        if self.vary.capacity is not None:
            drawn = tuple(_whole(self.vary.capacity, at) for at in capacities.tolist())
            changes["cluster"] = self.base.cluster.model_copy(update={"capacity": drawn})
        section = self.base.model_copy(update=changes)
        return self._with_load(self._with_mix(section, place), place["load"])

    def check(self) -> Self:
        """Makes sure that tasks can be drawn and built.

        Raises:
            InputError: if one is impossible.
        """
        workload = self.base.workload
        if workload.vary.anything:
            raise InputError(
                f"the base of the family '{self.name}' may not vary from jobset to jobset, so give "
                f"the ranges under 'vary' of the family and not under 'base.workload.vary'"
            )
        made_up = [name for name, value in self.vary if name in _OF_MADE_UP_JOBS and value]
        if workload.trace is not None and made_up:
            raise InputError(
                f"the base of the family '{self.name}' takes its jobs from a trace, so leave out "
                f"the ranges of made-up jobs: {', '.join(made_up)}"
            )
        cluster = self.base.cluster
        if self.vary.dominant_share is not None and len(cluster.capacity) < 2:
            raise InputError(
                f"a dominant_share needs at least 2 resources, but the base of the family "
                f"'{self.name}' has one"
            )
        if self.vary.class_weight is not None and cluster.num_classes < 2:
            raise InputError(
                f"a class_weight needs jobs of several classes, so give the base of the family "
                f"'{self.name}' a cluster with num_classes of 2 or more"
            )
        rng = np.random.default_rng(0)
        for section in (self.base, *(self.draw(rng) for _ in range(_TRIES))):
            section.build_workload()
            section.build_objective()
        return self

    def _objective(self, place: float, of_classes: NDArray[np.float64]) -> Any:
        """The objective of a task; ``of_classes`` are the places of the classes' weights."""
        choices = self.vary.objectives
        chosen = _choose(choices, place) if choices else self.base.objective
        bounds = self.vary.class_weight
        if bounds is None or (choices and chosen != _CLASS_SLOWDOWN):
            return chosen
        weights = [_between_logs(bounds, at) for at in of_classes.tolist()]
        return class_slowdown_name([float(f"{weight:.3g}") for weight in weights])

    def _with_mix(self, section: TaskSection, place: dict[str, float]) -> TaskSection:
        """The task with the window, the share and the durations of its jobs."""
        vary = self.vary
        changes: dict[str, Any] = {}
        if vary.window:
            changes["window"] = _choose(vary.window, place["window"])
        if vary.small_share is not None:
            changes["small_share"] = _between(vary.small_share, place["small_share"])
        for kind in ("small", "large"):
            bounds = getattr(vary, f"{kind}_duration")
            if bounds is not None:
                ends = (place[f"{kind}_low"], place[f"{kind}_high"])
                changes[f"{kind}_duration"] = tuple(sorted(_whole(bounds, at) for at in ends))
        if vary.dominant_share is not None:
            first = _between(vary.dominant_share, place["dominant"])
            others = len(self.base.cluster.capacity) - 1
            changes["dominant_shares"] = (first, *[(1 - first) / others] * others)
        if vary.burstiness is not None:
            changes["burstiness"] = _between(vary.burstiness, place["bursts"])
        return _with_workload(section, changes)

    def _with_load(self, section: TaskSection, place: float) -> TaskSection:
        """The task with its load, as far as that is in reach of its mix of jobs."""
        if self.vary.load is None:
            return section
        reach = _with_workload(section, {"load": _LOW_LOAD}).build_workload()
        assert isinstance(reach, BimodalWorkload)
        load = min(_between(self.vary.load, place), reach.max_load)
        return _with_workload(section, {"load": load})


_OF_MADE_UP_JOBS = (
    *("load", "small_share", "small_duration", "large_duration"),
    *("dominant_share", "burstiness"),
)


def read_family(path: Path) -> FamilySection:
    """Reads the YAML file of a family.

    Raises:
        InputError: if it cannot be read, has an unknown key or an impossible value, or describes
            tasks that are impossible.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path} of a task distribution")
    data = {"name": path.stem, **read_yaml(path)}
    try:
        return parse_section(FamilySection, data).check()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _with_workload(section: TaskSection, changes: dict[str, Any]) -> TaskSection:
    workload: WorkloadSection = section.workload.model_copy(update=changes)
    return section.model_copy(update={"workload": workload})


def _choose(choices: tuple[T, ...], place: float) -> T:
    return choices[min(int(place * len(choices)), len(choices) - 1)]


def _between(bounds: tuple[float, float], place: float) -> float:
    """The value at a place from 0 (the lower bound) to 1 (the upper one)."""
    low, high = bounds
    return low + place * (high - low)


def _between_logs(bounds: tuple[float, float], place: float) -> float:
    """Likewise on a logarithmic scale."""
    return math.exp(_between((math.log(bounds[0]), math.log(bounds[1])), place))


def _whole(bounds: tuple[int, int], place: float) -> int:
    """A whole number from a range, both ends included, all equally often."""
    low, high = bounds
    return min(low + int(place * (high - low + 1)), high)
