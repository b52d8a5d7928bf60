"""The values that a setting may take, in a sweep or in a family of tasks."""

import math
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from rllib_configs.config.sections import Section

Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Range = tuple[float, float]
WholeRange = tuple[int, int]

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
