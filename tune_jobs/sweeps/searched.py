"""What searches read: their settings, their part of a sweep, and names in a trial's results."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from rllib_configs.config.dimensions import Dimension
from rllib_configs.config.sections import Count, Section

SETTINGS = "settings"
"""What Ray Tune's config of a trial holds: the settings of the space, by key."""

Settings = Mapping[str, Any]

SCORE, SCORED_AT = "score", "scored_at"
"""In a trial's results: what ranks it, and the iteration at which that was new; 0 before."""


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
    """The part of a sweep that a search reads; see `tune_jobs.sweeps.definition.Sweep`."""

    @property
    def space(self) -> Mapping[str, Dimension]:
        """Settings that differ."""

    @property
    def task_keys(self) -> list[str]:
        """Those of them that give trials different tasks."""

    mode: Literal["min", "max"]
    trials: int
    asha: AshaSection
    pbt: PbtSection
