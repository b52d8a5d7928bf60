"""What searches work on: their options, a sweep as they see it, and the points that they choose."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from rllib_configs.dimensions import Dimension
from rllib_configs.sections import Count, Section


class Stream(IntEnum):
    """Streams of random numbers of a sweep; the values are part of every seed."""

    POINTS = 0
    SEEDS = 1
    EVOLUTION = 2
    SEARCHER = 3


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

    def describe(self, keys: Sequence[str] | None = None) -> str:
        """Its settings, or those of some keys, short: ``lr=0.001 objective=makespan``."""
        return " ".join(
            f"{key.rpartition('.')[2]}={short_value(self.settings[key])}"
            for key in (self.settings if keys is None else keys)
        )


def short_value(value: Any) -> str:
    """A setting's value as tables show it."""
    if isinstance(value, bool) or not isinstance(value, float | dict | list | tuple):
        return str(value)
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value)
