"""Ranges of DeepRM's tasks, which know what goes with what."""

import math
from dataclasses import replace
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.objectives.classes import class_slowdown_name
from cluster_env.worlds.deeprm.workloads import LOWEST_LOAD
from rllib_configs.config.ranges import TaskRanges
from rllib_configs.config.sections import Count, Positive, Share, WholeNumber
from rllib_configs.config.task_schema import TaskSection

T = TypeVar("T")

Burstiness = Annotated[float, Field(ge=0, lt=1)]

_CLASS_SLOWDOWN = "class_slowdown"
_DRAWS = (
    *("objective", "load", "window", "small_share", "small_low", "small_high"),
    *("large_low", "large_high", "dominant", "bursts"),
)
_OF_MADE_UP_JOBS = (
    *("load", "small_share", "small_duration", "large_duration"),
    *("dominant_share", "burstiness"),
)


class DeepRMRanges(TaskRanges):
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
            if name in ("keys", "objectives", "window") or value is None or value[0] <= value[1]:
                continue
            raise PydanticCustomError(
                "empty_range",
                "a range goes from the lower to the higher value, but {name} goes from {low} to "
                "{high}",
                {"name": name, "low": value[0], "high": value[1]},
            )
        return self

    def draw(self, base: TaskSection, rng: np.random.Generator) -> TaskSection:
        """Draws a task.

        It takes the same numbers from the generator whatever varies, so that a range more or less
        leaves the other draws as they are.

        Raises:
            InputError: if the base is impossible.
        """
        cluster = base.world.cluster
        place = dict(zip(_DRAWS, rng.random(len(_DRAWS)).tolist(), strict=True))
        capacities = rng.random(len(cluster.capacity))
        classes = rng.random(cluster.num_classes)
        changes: dict[str, Any] = {"objective": self._objective(base, place["objective"], classes)}
        if self.capacity is not None:
            drawn = tuple(_whole(self.capacity, at) for at in capacities.tolist())
            changes["world"] = replace(base.world, cluster=replace(cluster, capacity=drawn))
        section = base.model_copy(update=changes)
        section = self._with_mix(section, place)
        if self.load is not None:  # as far as it is in reach of the mix of jobs
            reach = _with_workload(section, {"load": LOWEST_LOAD}).build_workload().max_load
            load = min(_between(self.load, place["load"]), reach)
            section = _with_workload(section, {"load": load})
        return super().draw(section, rng)

    def check(self, base: TaskSection, family: str) -> None:
        """Makes sure that the ranges go with the base.

        Raises:
            InputError: if one does not.
        """
        made_up = [name for name in _OF_MADE_UP_JOBS if getattr(self, name)]
        if made_up and base.workload.kind != "bimodal":
            raise InputError(
                f"the base of the family '{family}' takes its jobs from a "
                f"{base.workload.kind}, so leave out the ranges for synthetic jobs: "
                f"{', '.join(made_up)}"
            )
        cluster = base.world.cluster
        if self.dominant_share is not None and len(cluster.capacity) < 2:
            raise InputError(
                f"a dominant_share needs at least 2 resources, but the base of the family "
                f"'{family}' has one"
            )
        if self.class_weight is not None and cluster.num_classes < 2:
            raise InputError(
                f"a class_weight needs jobs of several classes, so give the base of the family "
                f"'{family}' a cluster with num_classes of 2 or more"
            )
        super().check(base, family)

    def _objective(self, base: TaskSection, place: float, of_classes: NDArray[np.float64]) -> Any:
        """The objective of a task; ``of_classes`` are the places of the classes' weights."""
        choices = self.objectives
        chosen = _choose(choices, place) if choices else base.objective
        bounds = self.class_weight
        if bounds is None or (choices and chosen != _CLASS_SLOWDOWN):
            return chosen
        logs = math.log(bounds[0]), math.log(bounds[1])
        weights = [math.exp(_between(logs, at)) for at in of_classes.tolist()]
        return class_slowdown_name([float(f"{weight:.3g}") for weight in weights])

    def _with_mix(self, section: TaskSection, place: dict[str, float]) -> TaskSection:
        """The task with the window, the share and the durations of its jobs."""
        changes: dict[str, Any] = {}
        if self.window:
            changes["window"] = _choose(self.window, place["window"])
        if self.small_share is not None:
            changes["small_share"] = _between(self.small_share, place["small_share"])
        for kind in ("small", "large"):
            bounds = getattr(self, f"{kind}_duration")
            if bounds is not None:
                ends = (place[f"{kind}_low"], place[f"{kind}_high"])
                changes[f"{kind}_duration"] = tuple(sorted(_whole(bounds, at) for at in ends))
        if self.dominant_share is not None:
            first = _between(self.dominant_share, place["dominant"])
            others = len(section.world.cluster.capacity) - 1
            changes["dominant_shares"] = (first, *[(1 - first) / others] * others)
        if self.burstiness is not None:
            changes["burstiness"] = _between(self.burstiness, place["bursts"])
        return _with_workload(section, changes)


def _with_workload(section: TaskSection, changes: dict[str, Any]) -> TaskSection:
    workload = section.workload.model_copy(update=changes)
    return section.model_copy(update={"workload": workload})


def _choose(choices: tuple[T, ...], place: float) -> T:
    return choices[min(int(place * len(choices)), len(choices) - 1)]


def _between(bounds: tuple[float, float], place: float) -> float:
    """The value at a place from 0 (the lower bound) to 1 (the upper one)."""
    low, high = bounds
    return low + place * (high - low)


def _whole(bounds: tuple[int, int], place: float) -> int:
    """A whole number from a range, both ends included, all equally often."""
    low, high = bounds
    return min(low + int(place * (high - low + 1)), high)
