"""Where jobsets come from, Poisson arrivals or job logs, and what their jobs are worth when."""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.spec import WorkloadSpec
from cluster_env.objectives.utility import ATTRIBUTE
from cluster_env.workloads.log import LogWorkload, warmup_marks
from cluster_env.workloads.recorded import RecordedJobs


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
        """Of some jobs, float64 ``(num_jobs, 2 P + 1)``; see `cluster_env.objectives.utility`."""
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
        shares: share of the jobs that each project of the world has, from the lowest priority on;
            empty: all have the same share.
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
    shares: tuple[float, ...] = ()

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
        if self.shares and len(self.shares) != self.projects:
            raise InputError(
                f"shares needs one share for each of the world's {self.projects} projects, or "
                f"none, but {len(self.shares)} were given"
            )
        if self.shares and not (min(self.shares) >= 0 and abs(sum(self.shares) - 1) < 1e-6):
            raise InputError(f"shares must be at least 0 and sum to 1, but they are {self.shares}")

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
            shares = np.array(self.shares or [1.0] * self.projects)
            project = rng.choice(self.projects, count, p=shares / shares.sum())
        return JobSet.of(
            arrival,
            duration,
            demand,
            window=self.window,
            job_class=project,
            attributes={ATTRIBUTE: read_utility(self.utility).rows(count)},
        )


@dataclass(frozen=True, kw_only=True)
class AccrualLog(LogWorkload):
    """Jobs of a log with utilities; see `LogWorkload` for what all logs have. A step is a second.

    The final utility decays from half the deadline to the deadline, which is a multiple of what the
    job's user estimated; other functions are stretched in the same way.

    Attributes:
        processors: of the machine; jobs must not ask for memory or GPUs.
        jobs: number of jobs in a jobset; 0: all jobs of a split; null: a jobset is a window of
            time.
        deadline: multiple of the estimated run time from which on a job has no utility.
        utility: time-utility function: ``linear``, ``square``, ``root`` or ``step``, or breakpoints
            of times the duration and unit utility, as ``1:1 1.5:0.8 3:0``; see `read_utility`.
        run_times: Refused: nothing in this world goes by believed run times. Deadlines go by the
            estimates, which `estimates` replaces.
        hash_users: Refused: jobs of this world have no names.

    Raises:
        InputError: if the file cannot be read, no job fits the machine, a split has no jobs, or
            the world has several projects.
    """

    refused: ClassVar = MappingProxyType(
        {
            "run_times": "nothing goes by believed run times; deadlines go by estimates",
            "hash_users": "its jobs have no names",
        }
    )

    processors: int = field(default=256, kw_only=False)
    projects: int = 1
    jobs: int | None = 256
    deadline: float = 2.0
    utility: str = "linear"

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            raise InputError(f"a deadline must be above 0, but {self.deadline:g} was given")
        read_utility(self.utility)
        if self.projects > 1:
            raise InputError(
                f"the world has projects={self.projects}, but jobs of a log have none; take the "
                "workload poisson, or projects=1"
            )
        super().__post_init__()

    def fitting(self, read: RecordedJobs) -> RecordedJobs:
        """The jobs that fit the machine."""
        machine = f"the machine of {self.processors:,} processors"
        return read.that_fit((self.processors,), machine, ("processors",))

    def load_of(self, recorded: RecordedJobs, span: int) -> float:
        """Mean demand for processors over what there is."""
        return float(recorded.load((self.processors,), span)[0])

    def served(self, jobset: JobSet, rng: np.random.Generator) -> JobSet:
        """The window with a time-utility function for each job."""
        estimate = np.asarray(jobset.attributes["estimate"], np.float64)
        functions = read_utility(self.utility).rows(jobset.num_jobs)
        points = (functions.shape[1] - 1) // 2
        # Multiples of the estimate, where the job carries multiples of its duration; 2 is the
        # paper's last breakpoint.
        scale = np.maximum(estimate, jobset.duration) * self.deadline / 2 / jobset.duration
        functions[:, :points] *= scale[:, None]
        return replace(jobset, attributes={ATTRIBUTE: functions, **warmup_marks(jobset)})


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")


def _machine(world: Any) -> dict[str, Any]:
    return {"processors": world.processors, "projects": world.projects}


WORKLOADS.register("poisson")(WorkloadSpec(PoissonWorkload, _machine))
WORKLOADS.register("trace")(WorkloadSpec(AccrualLog, _machine, own=("window",)))  # in seconds
WORKLOADS.alias("log", "trace")
