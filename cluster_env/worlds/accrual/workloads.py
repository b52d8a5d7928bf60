"""Where jobsets come from, Poisson arrivals, and what their jobs are worth when."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.spec import WorkloadSpec
from cluster_env.core.utility import ATTRIBUTE


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
                "values of a time-utility function must not rise and begin at 1 or less, "
                f"but they are {self.values}"
            )

    def rows(self, num_jobs: int) -> NDArray[np.float64]:
        """Of some jobs, float64 ``(num_jobs, 2 P + 1)``; see `cluster_env.core.utility`."""
        return np.tile([*self.times, *self.values, self.power], (num_jobs, 1))


UTILITIES: Registry[Breakpoints] = Registry(
    "time-utility function",
    {
        "linear": Breakpoints(),
        "square": Breakpoints(power=2.0),
        "root": Breakpoints(power=0.5),
        "step": Breakpoints((2.0, 2.0 + 1e-9), (1.0, 0.0)),
    },
)
"""Functions by name: the paper's (figure 1) and those of its figure 5, and a hard deadline."""


def read_utility(text: str) -> Breakpoints:
    """A function by name, or by its breakpoints: ``1:1 1.5:0.8 3:0``, ``1:1 2:0 ^2``.

    Raises:
        InputError: if the text is neither.
    """
    if ":" not in text:
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
            "breakpoints of a time-utility function are pairs of time (in durations) and "
            f"unit utility, such as '1:1 1.5:0.8 3:0', not '{shortened(text)}'"
        ) from error
    return Breakpoints(times, values, exponent)


@dataclass(frozen=True)
class PoissonWorkload:
    """The paper's jobs (section 5): Poisson arrivals, sizes and durations uniform whole numbers.

    Attributes:
        rate: mean number of jobs that arrive in a step.
        window: number of steps in which jobs may arrive.
        smallest: smallest number of processors that a job asks for.
        largest: largest number of processors that a job asks for.
        shortest: shortest run time in steps, on all processors that the job asks for.
        longest: longest run time in steps, on all processors that the job asks for.
        utility: time-utility function: ``linear``, ``square``, ``root`` or ``step``, or breakpoints
            of times the duration and unit utility, as ``1:1 1.5:0.8 3:0``; see `read_utility`.
    """

    processors: int = 24
    projects: int = 1
    rate: float = 0.1
    window: int = 1000
    smallest: int = 4
    largest: int = 20
    shortest: int = 5
    longest: int = 10
    utility: str = "linear"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1000:
            raise InputError(f"rate must be above 0, at most 1000, but {self.rate:g} was given")
        if not 1 <= self.window < 2**31:
            raise InputError(f"window must be 1 step or more, but {self.window} was given")
        for low, high, most in (
            ("smallest", "largest", self.processors),
            ("shortest", "longest", 2**31 - 1),
        ):
            lowest, highest = getattr(self, low), getattr(self, high)
            if not 1 <= lowest <= highest <= most:
                raise InputError(
                    f"{low} and {high} must be between 1 and {most:,}, in this order, but "
                    f"{lowest} and {highest} were given"
                )
        read_utility(self.utility)

    @property
    def load(self) -> float:
        """Mean demand for processors over what there is; 0.7 is 70 %."""
        mean = (self.smallest + self.largest) / 2 * (self.shortest + self.longest) / 2
        return self.rate * mean / self.processors

    @property
    def arrival_rate(self) -> float:
        """Mean number of arrivals in a step."""
        return self.rate

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        # Given how many there are, the arrivals of a Poisson process are uniform and independent.
        count = int(rng.poisson(self.rate * self.window))
        arrival = np.sort(rng.integers(0, self.window, count))
        duration = rng.integers(self.shortest, self.longest, count, endpoint=True)
        demand = rng.integers(self.smallest, self.largest, (count, 1), endpoint=True)
        # Projects come last, so that they move no other number.
        project = None
        if self.projects > 1:
            project = rng.choice(self.projects, count, p=np.full(self.projects, 1 / self.projects))
        return JobSet.of(
            arrival,
            duration,
            demand,
            window=self.window,
            job_class=project,
            attributes={ATTRIBUTE: read_utility(self.utility).rows(count)},
        )


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")


def _machine(world: Any) -> dict[str, Any]:
    return {"processors": world.processors, "projects": world.projects}


WORKLOADS.register("poisson")(WorkloadSpec(PoissonWorkload, _machine))
