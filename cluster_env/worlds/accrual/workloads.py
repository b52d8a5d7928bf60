"""Where jobsets come from: Poisson arrivals, and job logs with deadlines."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.seeding import Split
from cluster_env.core.spec import WorkloadSpec
from cluster_env.objectives.utility import ATTRIBUTE
from cluster_env.workloads.logs import read_log
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
        count = int(rng.poisson(self.rate * self.window))
        arrival = np.sort(rng.integers(0, self.window, count))
        return JobSet.of(
            arrival,
            rng.integers(self.shortest, self.longest, count, endpoint=True),
            rng.integers(self.smallest, self.largest, (count, 1), endpoint=True),
            window=self.window,
            attributes={ATTRIBUTE: read_utility(self.utility).rows(rng, count)},
        )


PARTS = {Split.TRAIN: (0.0, 0.6), Split.VALIDATION: (0.6, 0.8), Split.HELD_OUT: (0.8, 1.0)}
"""Between which shares of a log's time the jobs of a split were submitted."""


@dataclass(frozen=True)
class LogPart:
    """A stretch of a log; see `LogWorkload`."""

    recorded: RecordedJobs
    jobs: int
    deadline: float
    utility: str

    @property
    def num_disjoint(self) -> int:
        """Windows that fit side by side into it, sharing no job."""
        return max(1, self.recorded.num_jobs // (self.jobs or self.recorded.num_jobs))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts out a window that begins with any job; all that lie inside are equally likely."""
        num_jobs = self.recorded.num_jobs
        count = min(self.jobs or num_jobs, num_jobs)
        first = int(rng.integers(num_jobs - count, endpoint=True))
        jobset = self.recorded.jobset(slice(first, first + count))
        estimate = np.asarray(jobset.attributes.get("estimate", jobset.duration), np.float64)
        functions = read_utility(self.utility).rows(rng, count)
        points = (functions.shape[1] - 1) // 2
        # Multiples of the estimate, where the job carries multiples of its duration; 2 is the
        # paper's last breakpoint.
        scale = np.maximum(estimate, jobset.duration) * self.deadline / 2 / jobset.duration
        functions[:, :points] *= scale[:, None]
        return JobSet(
            jobset.arrival,
            jobset.duration,
            jobset.demand[:, :1].copy(),
            jobset.window,
            jobset.job_class,
            {ATTRIBUTE: functions},
        )


@dataclass(frozen=True)
class LogWorkload:
    """Jobs of a log, SWF or CSV in seconds, as jobs with utilities.

    The final utility decays from half the deadline to the deadline, which is a multiple of what the
    job's user estimated; other functions are stretched in the same way. Splits are those of the
    world `hpc`: training windows lie in the first 60 % of the log's time, validation windows in the
    next 20 % and held-out windows in the last 20 %.

    Attributes:
        path: the file, ``.csv`` for CSV, anything else for SWF.
        processors: of the machine; memory and GPUs are not looked at.
        jobs: in a jobset; 0 for all jobs of a split.
        stretch: factor on all times of submission: 0.5 doubles the load.
        deadline: multiple of the estimate at which a job is worth nothing.
        utility: time-utility function, by name or breakpoints.

    Raises:
        InputError: if the file cannot be read, no job fits the machine, or a split has no jobs.
    """

    path: Path | str
    processors: int = 256
    jobs: int = 256
    stretch: float = 1.0
    deadline: float = 2.0
    utility: str = "linear"

    def __post_init__(self) -> None:
        if self.jobs < 0 or not self.deadline > 0:
            raise InputError(
                f"a jobset needs 1 job or more, or 0 for all, and a deadline above 0, but "
                f"{self.jobs} and {self.deadline:g} were given"
            )
        read_utility(self.utility)
        for split in PARTS:
            if not self._stretch_of(split).num_jobs:
                begin, end = PARTS[split]
                raise InputError(
                    f"no job of {self.path} was submitted between {begin:.0%} and {end:.0%} of its "
                    f"time, where the {split.name.lower().replace('_', '-')} jobs come from"
                )

    @cached_property
    def recorded(self) -> RecordedJobs:
        """All jobs that fit the machine."""
        machine = f"the machine of {self.processors:,} processors"
        fitting = read_log(self.path).that_fit((self.processors,), machine, ("processors",))
        return fitting.stretched(self.stretch)

    def part(self, split: Split) -> LogPart:
        """The stretch of the log that the jobsets of a split come from."""
        return self._part_of(self._stretch_of(split))

    def before_held_out(self) -> LogPart:
        """The stretch of the log before its held-out jobs."""
        return self._part_of(self.recorded.between(0.0, PARTS[Split.HELD_OUT][0]))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts a window out of the whole log; `sample_jobsets` keeps the splits apart."""
        return self._part_of(self.recorded).sample(rng)

    def _part_of(self, recorded: RecordedJobs) -> LogPart:
        return LogPart(recorded, self.jobs, self.deadline, self.utility)

    def _stretch_of(self, split: Split) -> RecordedJobs:
        return self.recorded.between(*PARTS[split])


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")


def _processors(world: Any) -> dict[str, Any]:
    return {"processors": world.processors}


WORKLOADS.register("poisson")(WorkloadSpec(PoissonWorkload, _processors))
WORKLOADS.register("log")(WorkloadSpec(LogWorkload, _processors))
