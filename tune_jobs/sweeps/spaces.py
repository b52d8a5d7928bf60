"""What is searched: the values that a setting may take, and one choice of all of them."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Literal, Protocol, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from rllib_configs.task_schema import Count, Section

Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Range = tuple[float, float]
WholeRange = tuple[int, int]


class Stream(IntEnum):
    """Streams of random numbers of a sweep; the values are part of every seed."""

    POINTS = 0
    SEEDS = 1
    EVOLUTION = 2
    SEARCHER = 3


KINDS = ("grid", "choice", "uniform", "log_uniform", "integer")


class Dimension(Section):
    """One setting's values; exactly one of the kinds is given."""

    grid: Values | None = None
    """Each of these, with every combination of the other grids."""
    choice: Values | None = None
    """One of these, all equally likely."""
    uniform: Range | None = None
    """A number between the lowest and the highest."""
    log_uniform: Range | None = None
    """The same, with equally likely orders of magnitude; both above 0."""
    integer: WholeRange | None = None
    """A whole number between the lowest and the highest, both included."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_kind",
                "a setting has one of {kinds}, but {given} given",
                {"kinds": ", ".join(KINDS), "given": f"{' and '.join(given) or 'none'} was"},
            )
        if self.values is None:
            low, high = self.range
            if not low < high:
                raise PydanticCustomError(
                    "range", "the lowest value comes first, and is below the highest", {}
                )
            if self.log_uniform is not None and low <= 0:
                raise PydanticCustomError("log_range", "both ends of log_uniform are above 0", {})
        return self

    @property
    def values(self) -> tuple[Any, ...] | None:
        """All values where they can be listed, else None."""
        return self.grid or self.choice

    @property
    def range(self) -> Range:
        """Lowest and highest number."""
        found = self.uniform or self.log_uniform or self.integer
        assert found is not None
        return found

    def examples(self) -> tuple[Any, ...]:
        """All values, or both ends of a range, for checks."""
        return self.values or self.range

    def draw(self, rng: np.random.Generator) -> Any:
        """One value at random, in the form that YAML and JSON keep."""
        if self.values is not None:
            return self.values[int(rng.integers(len(self.values)))]
        low, high = self.range
        if self.integer is not None:
            return int(rng.integers(int(low), int(high) + 1))
        if self.log_uniform is not None:
            return float(math.exp(rng.uniform(math.log(low), math.log(high))))
        return float(rng.uniform(low, high))

    def clip(self, value: float) -> float | int:
        """The nearest number in the range, a whole one if the range is one of those."""
        low, high = self.range
        inside = min(max(value, low), high)
        return round(inside) if self.integer is not None else float(inside)


class AshaSection(Section):
    """When ASHA stops trials: at the grace period and each time that it is multiplied."""

    grace: Count = 1
    """Iterations that every trial may do; evaluations must have happened by then."""
    reduction: Annotated[float, Field(gt=1)] = 3.0
    """Of so many trials that get to a rung one goes on, and the next rung is so much later."""


class PbtSection(Section):
    """How a population evolves."""

    interval: Count = 10
    """Iterations between two times at which the worst take over from the best."""
    quantile: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """Share of the trials that take over, and of those that are taken from."""
    resample: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Probability that a setting is drawn anew rather than multiplied by 0.8 or 1.2, or moved to a
    neighbor in its list."""


class SearchedSweep(Protocol):
    """What a search knows of a sweep; see `tune_jobs.sweeps.definition.Sweep`."""

    @property
    def space(self) -> Mapping[str, Dimension]:
        """Settings that differ."""

    mode: Literal["min", "max"]
    metric: str
    average: int
    trials: int
    seed: int
    asha: AshaSection
    pbt: PbtSection


@dataclass(frozen=True)
class Point:
    """One trial, before it runs.

    Attributes:
        index: from 0; what its seed is derived from.
        settings: what the space says for it, by key.
    """

    index: int
    settings: dict[str, Any]

    def as_trial(self) -> dict[str, Any]:
        """What Ray Tune knows of the trial."""
        return {"index": self.index, "settings": dict(self.settings)}

    def describe(self) -> str:
        """Its settings, short: ``lr=0.001 objective=makespan``."""
        return " ".join(
            f"{key.rpartition('.')[2]}={short_value(value)}" for key, value in self.settings.items()
        )


def short_value(value: Any) -> str:
    """A setting's value as tables show it."""
    if isinstance(value, bool) or not isinstance(value, float | dict | list | tuple):
        return str(value)
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value)
