"""Where jobsets come from: Poisson arrivals, and job logs with deadlines."""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.spec import WorkloadSpec
from cluster_env.objectives.utility import ATTRIBUTE
from cluster_env.workloads.log import LogWorkload, warmup_marks
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds.accrual.utilities import read_utility


@dataclass(frozen=True)
class PoissonWorkload:
    """The paper's jobs (section 5): Poisson arrivals, sizes and durations uniform whole numbers.

    Attributes:
        processors: of the machine.
        rate: mean number of arrivals in a step.
        window: steps in which jobs may arrive.
        smallest: fewest processors that a job asks for.
        largest: most of them.
        shortest: steps of the shortest job on all processors that it asks for.
        longest: steps of the longest one.
        utility: time-utility function, by name or breakpoints, see
            `cluster_env.worlds.accrual.utilities`.
    """

    processors: int = 24
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
        return JobSet.of(
            arrival,
            rng.integers(self.shortest, self.longest, count, endpoint=True),
            rng.integers(self.smallest, self.largest, (count, 1), endpoint=True),
            window=self.window,
            attributes={ATTRIBUTE: read_utility(self.utility).rows(rng, count)},
        )


@dataclass(frozen=True, kw_only=True)
class AccrualLog(LogWorkload):
    """Jobs of a log with utilities; see `LogWorkload` for what all logs have. A step is a second.

    The final utility decays from half the deadline to the deadline, which is a multiple of what the
    job's user estimated; other functions are stretched in the same way.

    Attributes:
        processors: of the machine; jobs must not ask for memory or GPUs.
        jobs: in a jobset; 0 for all jobs of a split. null for windows by time.
        deadline: multiple of the estimate at which a job is worth nothing.
        utility: time-utility function, by name or breakpoints.
        run_times: Refused: nothing in this world goes by believed run times. Deadlines go by the
            estimates, which `estimates` replaces.
        hash_users: Refused: jobs of this world have no names.

    Raises:
        InputError: if the file cannot be read, no job fits the machine, or a split has no jobs.
    """

    refused: ClassVar = MappingProxyType(
        {
            "run_times": "nothing goes by believed run times; deadlines go by estimates",
            "hash_users": "its jobs have no names",
        }
    )

    processors: int = field(default=256, kw_only=False)
    jobs: int | None = 256
    deadline: float = 2.0
    utility: str = "linear"

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            raise InputError(f"a deadline must be above 0, but {self.deadline:g} was given")
        read_utility(self.utility)
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
        functions = read_utility(self.utility).rows(rng, jobset.num_jobs)
        points = (functions.shape[1] - 1) // 2
        # Multiples of the estimate, where the job carries multiples of its duration; 2 is the
        # paper's last breakpoint.
        scale = np.maximum(estimate, jobset.duration) * self.deadline / 2 / jobset.duration
        functions[:, :points] *= scale[:, None]
        return replace(jobset, attributes={ATTRIBUTE: functions, **warmup_marks(jobset)})


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")


def _processors(world: Any) -> dict[str, Any]:
    return {"processors": world.processors}


WORKLOADS.register("poisson")(WorkloadSpec(PoissonWorkload, _processors))
WORKLOADS.register("trace")(WorkloadSpec(AccrualLog, _processors, own=("window",)))  # in seconds
WORKLOADS.alias("log", "trace")
