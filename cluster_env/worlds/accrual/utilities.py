"""Time-utility functions by name, and of one's own."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import Registry, unknown


class TimeUtility(Protocol):
    """A distribution over the functions that jobs carry."""

    def rows(self, rng: np.random.Generator, num_jobs: int) -> NDArray[np.float64]:
        """Functions of some jobs, float64 ``(num_jobs, 2 P + 1)``.

        See `cluster_env.objectives.utility` for what a row says. P must not depend on the draw.
        """


@dataclass(frozen=True)
class Breakpoints:
    """One function for all jobs, a straight line between breakpoints, raised to a power above 0.

    Times are multiples of the duration, rising; values are unit utilities, from 1 to 0 and never
    rising.
    """

    times: tuple[float, ...] = (1.0, 2.0)
    values: tuple[float, ...] = (1.0, 0.0)
    power: float = 1.0

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values) or not self.times:
            raise InputError(
                f"a time-utility function needs as many values as times, at least one, but it has "
                f"{len(self.times)} times and {len(self.values)} values"
            )
        numbers = np.array([self.times, self.values], np.float64)
        if not np.isfinite(numbers).all() or numbers.min() < 0 or not 0 < self.power < 100:
            raise InputError(
                "times and values of a time-utility function must be finite and at least 0, and "
                "its power above 0 and below 100"
            )
        if np.any(np.diff(self.times) <= 0):
            raise InputError(
                f"times of a time-utility function must rise, but they are {self.times}"
            )
        if np.any(np.diff(self.values) > 0) or self.values[0] > 1:
            raise InputError(
                f"values of a time-utility function must not rise, from at most 1, but they are "
                f"{self.values}"
            )

    def rows(self, rng: np.random.Generator, num_jobs: int) -> NDArray[np.float64]:
        """See `TimeUtility.rows`; draws nothing."""
        return np.tile([*self.times, *self.values, self.power], (num_jobs, 1))


UTILITIES: Registry[TimeUtility] = Registry("time-utility function")
"""Functions by name: the paper's (figure 1) and those of its figure 5, and a hard deadline."""

UTILITIES.register("linear")(Breakpoints())
UTILITIES.register("square")(Breakpoints(power=2.0))
UTILITIES.register("root")(Breakpoints(power=0.5))
UTILITIES.register("step")(Breakpoints((2.0, 2.0 + 1e-9), (1.0, 0.0)))


def read_utility(text: str) -> TimeUtility:
    """A function by name, or by its breakpoints: ``1:1 1.5:0.8 3:0``, ``1:1 2:0 ^2``.

    Raises:
        InputError: if the text is neither.
    """
    if ":" not in text:
        if text not in UTILITIES.names():
            raise unknown("time-utility function", text, UTILITIES.names())
        return UTILITIES.get(text)
    words = text.split()
    power = "1"
    if words[-1].startswith("^"):
        power = words.pop()[1:]
    try:
        points = [[float(part) for part in word.split(":")] for word in words]
        times, values = zip(*points, strict=True)
        exponent = float(power)
    except ValueError as error:
        raise InputError(
            f"breakpoints of a time-utility function look like '1:1 1.5:0.8 3:0', times the "
            f"duration and unit utility, not '{shortened(text)}'"
        ) from error
    return Breakpoints(times, values, exponent)
