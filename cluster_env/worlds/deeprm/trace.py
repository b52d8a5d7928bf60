"""Jobs that were recorded: windows cut out of a file of a user's own."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.trace_file import Trace, read_once

PARTS = {Split.TRAIN: (0, 60), Split.VALIDATION: (60, 80), Split.HELD_OUT: (80, 100)}
"""Between which percents of a trace's time the jobs of a split arrive."""

MIN_WINDOWS = 5
"""Windows that a trace spans at least, so that one fits into 20 % of it."""


@dataclass(frozen=True, eq=False)
class TracePart:
    """A stretch of a trace.

    Attributes:
        jobs: those that arrive in it; step 0 is its first one, and the window its whole length.
        cluster: what runs them.
        window: time steps of a jobset.
        first_step: jobs that arrive before this step of a jobset are left out.
    """

    jobs: JobSet
    cluster: Cluster
    window: int
    first_step: int

    @property
    def load(self) -> float:
        """Measured mean demand over capacity; 0.7 is 70 %."""
        return float(np.mean(self.jobs.work / np.asarray(self.cluster.capacity)) / self.jobs.window)

    @property
    def arrival_rate(self) -> float:
        """Measured mean number of arrivals in a time step."""
        return self.jobs.num_jobs / self.jobs.window

    @property
    def num_disjoint(self) -> int:
        """Windows that fit side by side into it, sharing no job."""
        return max(1, self.jobs.window // self.window)

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts out a window that begins at any step; all that lie inside are equally likely."""
        jobs = self.jobs
        offset = int(rng.integers(jobs.window - self.window, endpoint=True))
        first, stop = np.searchsorted(
            jobs.arrival, (offset + self.first_step, offset + self.window)
        )
        return JobSet(
            jobs.arrival[first:stop] - np.int32(offset),
            jobs.duration[first:stop],
            jobs.demand[first:stop],
            self.window,
            jobs.job_class[first:stop],
        )


@dataclass(frozen=True)
class TraceWorkload:
    """Jobs from a file of a user's own; see `read_jobs` for what may be in it.

    A jobset is a window of the trace that begins at a random step. Its cluster is empty in the
    beginning, whatever had arrived before. The splits share no job: training windows lie in the
    first 60 % of the trace's time, validation windows in the next 20 % and held-out windows in the
    last 20 % (`PARTS`). Windows of one split may overlap, so the jobsets of a short trace resemble
    each other.

    Attributes:
        path: the CSV file. It is read again where the workload is built, and must not change
            while results depend on it.
        cluster: what has to run the jobs.
        window: time steps of a jobset.
        first_step: jobs that arrive before this step of a jobset are left out; with 1 nothing
            arrives in step 0, as in DeepRM's released code.

    Raises:
        InputError: if the file cannot be read, a line of it is wrong, a job cannot run on the
            cluster, the trace is shorter than five windows, or no job arrives in one of its parts.
    """

    path: Path | str
    cluster: Cluster = field(default_factory=Cluster)
    window: int = 50
    first_step: int = 0

    def __post_init__(self) -> None:
        if self.window < 1 or not 0 <= self.first_step < self.window:
            raise InputError(
                f"the arrival window needs at least 1 step and first_step inside it, but window="
                f"{self.window} and first_step={self.first_step} were given"
            )
        self.trace.check(self.cluster)
        length = self.trace.jobs.window
        if length < MIN_WINDOWS * self.window:
            raise InputError(
                f"the trace {self.path} is too short: its arrivals span {length} steps, but "
                f"windows of {self.window} steps need {MIN_WINDOWS * self.window}, so that one "
                f"fits into each of its parts (60 % training, 20 % validation, 20 % held out); "
                f"take a longer trace or a smaller window"
            )
        for split, part in self._parts.items():
            if not part.jobs.num_jobs:
                begin, end = PARTS[split]
                raise InputError(
                    f"in the trace {self.path} no job arrives between {begin} % and {end} % of its "
                    f"time, where the {split.name.lower().replace('_', '-')} jobs come from"
                )

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.path).name

    @cached_property
    def trace(self) -> Trace:
        """All jobs of the file."""
        return read_once(self.path, self.cluster.num_resources)

    @property
    def load(self) -> float:
        """Measured load of the whole trace; that of a split is ``part(split).load``."""
        return self._between(0, 100).load

    @property
    def arrival_rate(self) -> float:
        """Measured mean number of arrivals in a time step of the whole trace."""
        return self._between(0, 100).arrival_rate

    def part(self, split: Split) -> TracePart:
        """The stretch of the trace that the jobsets of a split come from."""
        return self._parts[split]

    def before_held_out(self) -> TracePart:
        """The stretch of the trace before its held-out jobs."""
        return self._between(0, PARTS[Split.HELD_OUT][0])

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts a window out of the whole trace; `sample_jobsets` keeps the splits apart."""
        return self._between(0, 100).sample(rng)

    @cached_property
    def _parts(self) -> dict[Split, TracePart]:
        return {split: self._between(*percents) for split, percents in PARTS.items()}

    def _between(self, begin: int, end: int) -> TracePart:
        """The stretch between two percents of the trace's time."""
        jobs = self.trace.jobs
        start, stop = (jobs.window * percent // 100 for percent in (begin, end))
        first, last = np.searchsorted(jobs.arrival, (start, stop))
        own = JobSet(
            jobs.arrival[first:last] - np.int32(start),
            jobs.duration[first:last],
            jobs.demand[first:last],
            stop - start,
            jobs.job_class[first:last],
        )
        return TracePart(own, self.cluster, self.window, self.first_step)
