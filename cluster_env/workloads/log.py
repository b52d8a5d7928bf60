"""Recorded jobs as a workload: a log of a site's own, cut into jobsets. The same in every world."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads.estimates import get_estimates
from cluster_env.workloads.formats import AUTO, READ_OPTIONS, read_log
from cluster_env.workloads.hashing import hashed
from cluster_env.workloads.limits import LONGEST
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.windows import natural_length, resampled, window_by_count, window_by_time

RECORDED = "recorded"
"""The estimates that stand in the log."""


@dataclass(frozen=True, kw_only=True)
class LogWorkload(ABC):
    """Jobs of a log of one's own: SWF, CSV or what Slurm writes, plain or with gzip.

    A jobset is a window of the log, by count or by time; the machine is empty when its first job
    arrives. The splits share no job: training windows lie in the first part of the log's time,
    validation windows in the next and held-out windows in the last. Windows of one split may
    overlap, so the jobsets of a short log resemble each other.

    The log is read again where the workload is built, and must not change while results depend on
    it. Every world has its own subclass under the name ``trace``, which says which jobs its machine
    can run (`fitting`) and makes a window of the log a jobset of the world (`served`).

    Attributes:
        path: path of the log, plain or compressed with gzip.
        jobs: number of jobs in a jobset; 0: all jobs of a split. If it is not set, `window` counts.
        window: seconds in which the jobs of a jobset arrive. 0: 20 mean run times, or the time in
            which 256 jobs are submitted, whichever is longer.
        offset: where in its split every jobset begins: number of jobs to skip if `jobs` is set,
            else seconds to skip. Below 0: at random.
        stretch: factor on all times of submission: 0.5 doubles the load.
        scaled_load: load of the whole log after its times of submission are scaled, 0.9 for 90 %;
            0: they stay as they are.
        warmup: seconds before a window of time whose jobs are scheduled but not measured, so that
            the window begins on a machine as full as the policy keeps it. `compare` sets its own
            warm-up.
        block: length in seconds of blocks of the log that are drawn with replacement and joined to
            jobsets, such as 86400 for days; 0: jobsets are windows of the log as it was.
        splits: shares of the log's time at which the training and the validation part end; the rest
            is held out.
        whole: whether every split has all jobs of the log, to replay it as it was. One jobset holds
            them all, unless `jobs` or `window` is set.
        estimates: where estimates of run times come from: ``recorded`` keeps those of the log, and
            a model such as ``exact``, ``gaussian:0.5`` or ``tsafrir`` replaces them.
        log_format: format of the log: ``auto`` (detected), ``swf``, ``csv``, ``sacct``,
            ``sacct-json``, ``jobcomp`` or ``pbs``; see `cluster_env.workloads.formats.read_log`.
        time_zone: time zone of times in the log that name none, such as Europe/Berlin; empty: UTC.
        columns: columns of a CSV whose names differ from the expected ones, as
            ``arrival=submission_time,duration=runtime``.
        partition: name or number of the one partition or queue whose jobs are read; empty: all.
        missing_limits: estimate of a job without a time limit: the longest limit of the log
            (``longest``), its run time (``run-time``), or a number of seconds.
        hash_users: whether hashes replace the names of users and groups.

    Raises:
        InputError: if the file cannot be read, no job fits the machine, a split has no jobs, or an
            option has a value that it cannot have in this world.
    """

    refused: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Options that logs of this world cannot have, and why; they keep their defaults."""
    may_be_empty: ClassVar[bool] = False
    """Whether a window may lie where no job arrives; else windows lie around jobs."""

    path: Path | str = field(kw_only=False)
    jobs: int | None = None
    window: int = 0
    offset: int = -1
    stretch: float = 1.0
    scaled_load: float = 0.0
    block: int = 0
    splits: tuple[float, float] = (0.6, 0.8)
    whole: bool = False
    estimates: str = RECORDED
    warmup: int = 0
    log_format: str = AUTO
    time_zone: str = ""
    columns: str = ""
    partition: str | int = ""
    missing_limits: str | int = LONGEST
    hash_users: bool = False

    @abstractmethod
    def fitting(self, read: RecordedJobs) -> RecordedJobs:
        """The jobs of the file that the machine can run.

        Raises:
            InputError: if there is none.
        """

    @abstractmethod
    def load_of(self, recorded: RecordedJobs, span: int) -> float:
        """Mean demand of some jobs over what the machine has in a time; 0.7 is 70 %."""

    def served(self, jobset: JobSet, rng: np.random.Generator) -> JobSet:
        """A window of the log as a jobset of the world; by default as it is."""
        return jobset

    def __post_init__(self) -> None:
        self._check_options()
        for split in Split:
            part = self._part(*self._shares(split))
            name = split.name.lower().replace("_", "-")
            if not part.recorded.num_jobs:
                begin, end = (100 * share for share in self._shares(split))
                raise InputError(
                    f"no job of {self.path} was submitted between {begin:.0f} % and "
                    f"{end:.0f} % of its time, where the {name} jobs come from; whole=true "
                    "takes all jobs for each part, splits=[0.6, 0.8] sets where parts end"
                )
            most, what = (part.recorded.num_jobs, "jobs") if self.jobs else (part.span, "seconds")
            if self.offset >= most:
                raise InputError(
                    f"offset is {self.offset:,}, but the {name} part of {self.path} has {most:,} "
                    f"{what}"
                )

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.path).name

    @property
    def load(self) -> float:
        """Measured load of the whole log; that of a split is ``part(split).load``."""
        return self._part(0.0, 1.0).load

    @property
    def arrival_rate(self) -> float:
        """Measured mean number of arrivals in a second of the whole log."""
        return self._part(0.0, 1.0).arrival_rate

    @cached_property
    def recorded(self) -> RecordedJobs:
        """All jobs that fit the machine, at the times of submission that were asked for."""
        read = self.read()
        fitting = self.fitting(read)  # limits of users are by their names
        fitting = hashed(fitting) if self.hash_users else fitting
        factor = self.stretch
        if self.scaled_load:
            factor = self.load_of(fitting, fitting.span) / self.scaled_load
        return fitting.stretched(factor)

    def read(self) -> RecordedJobs:
        """All jobs of the file; the latest files are remembered."""
        return read_log(self.path, **{name: getattr(self, name) for name in READ_OPTIONS})

    @property
    def num_too_large(self) -> int:
        """Jobs that are left out because the machine is smaller."""
        return self.read().num_jobs - self.recorded.num_jobs

    def part(self, split: Split) -> "LogPart":
        """The stretch of the log that the jobsets of a split come from."""
        return self._part(*self._shares(split))

    def before_held_out(self) -> "LogPart":
        """The stretch of the log before its held-out jobs, or all of it with `whole`."""
        return self._part(0.0, 1.0 if self.whole else self.splits[1])

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts a window out of the whole log; `sample_jobsets` keeps the splits apart."""
        return self._part(0.0, 1.0).sample(rng)

    def _shares(self, split: Split) -> tuple[float, float]:
        """Between which shares of the log's time the jobs of a split were submitted."""
        trained, validated = self.splits
        if self.whole:
            return 0.0, 1.0
        return {
            Split.TRAIN: (0.0, trained),
            Split.VALIDATION: (trained, validated),
            Split.HELD_OUT: (validated, 1.0),
        }[split]

    def _part(self, begin: float, end: float) -> "LogPart":
        """The stretch between two shares of the log's time."""
        return LogPart(self, self.recorded.between(begin, end), begin, end)

    def _check_options(self) -> None:
        usual = {entry.name: entry.default for entry in fields(self)}
        for name, why in self.refused.items():
            if getattr(self, name) != usual[name]:
                raise InputError(f"{name} is no option of logs in this world: {why}")
        if (self.jobs is not None and self.jobs < 0) or min(self.window, self.block) < 0:
            raise InputError(
                f"jobs, window and block must be 0 or more, but {self.jobs}, {self.window:,} and "
                f"{self.block:,} were given"
            )
        if self.warmup < 0 or (self.warmup and (self.jobs is not None or self.whole)):
            raise InputError(
                "warmup must be 0 or more seconds and needs jobsets that are windows of "
                f"time (neither jobs nor whole), but {self.warmup:,} was given"
            )
        if self.jobs is not None and self.window:
            raise InputError(
                f"a jobset has {self.jobs:,} jobs or lasts {self.window:,} s; give one of the two "
                f"(jobs=null, or window=0)"
            )
        if self.scaled_load < 0 or (self.scaled_load and self.stretch != 1):
            raise InputError(
                "scaled_load must be above 0 and cannot be combined with stretch, but "
                f"{self.scaled_load:g} and {self.stretch:g} were given"
            )
        if self.estimates != RECORDED:
            get_estimates(self.estimates)
        if not 0 < self.splits[0] < self.splits[1] < 1:
            raise InputError(
                "splits must be two rising shares of the log's time, such as [0.6, 0.8], "
                f"but {list(self.splits)} was given"
            )


def warmup_marks(jobset: JobSet) -> dict[str, NDArray[Any]]:
    """The attribute that says which jobs count, for worlds that keep no other; maybe none."""
    return {name: jobset.attributes[name] for name in ("counted",) if name in jobset.attributes}


@dataclass(frozen=True, eq=False)
class LogPart:
    """A stretch of a log, between two shares of its time, and how jobsets are cut out of it."""

    log: LogWorkload
    recorded: RecordedJobs
    begin: float
    end: float

    @property
    def jobs(self) -> int | None:
        """Jobs in a jobset; None where a jobset is as long as `window`."""
        log = self.log
        everything = log.jobs == 0 or (log.whole and log.jobs is None and not log.window)
        return self.recorded.num_jobs if everything else log.jobs

    @cached_property
    def window(self) -> int:
        """Seconds of a jobset, without its warm-up."""
        return self.log.window or natural_length(self.log.recorded)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """First second and length of the stretch of time in which windows lie.

        That is from its first submission to its last, or where windows may be empty, all of it.
        """
        if not self.log.may_be_empty:
            return int(self.recorded.submit[0]), self.recorded.span
        whole = self.log.recorded
        begin, end = (int(whole.span * share) for share in (self.begin, self.end))
        return int(whole.submit[0]) + begin, end - begin

    @property
    def span(self) -> int:
        """Seconds of the stretch."""
        return self.bounds[1]

    @property
    def load(self) -> float:
        """Measured mean demand over what there is; 0.7 is 70 %."""
        return self.log.load_of(self.recorded, self.span)

    @property
    def arrival_rate(self) -> float:
        """Measured mean number of arrivals in a second."""
        return self.recorded.num_jobs / self.span

    @property
    def num_disjoint(self) -> int:
        """Windows that fit side by side into it, sharing no job, not even of the warm-up."""
        jobs = self.jobs
        if self.log.offset >= 0 and not self.log.block:
            return 1
        if jobs is None:
            return max(1, self.span // (self.window + self.log.warmup))
        return max(1, self.recorded.num_jobs // max(1, jobs))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts a window out of it; the same generator state gives the same jobset."""
        log, source, jobs = self.log, self.recorded, self.jobs
        length, offset = self.window + log.warmup, log.offset
        bounds = self.bounds if log.may_be_empty else None
        # Blocks first: the window is cut out of what they are put together to.
        if log.block:
            size = (0, length) if jobs is None else (jobs, 0)
            source, offset, bounds = resampled(source, log.block, *size, rng), 0, None
        if jobs is None:
            jobset = window_by_time(source, length, offset, rng, bounds)
        else:
            jobset = window_by_count(source, jobs, offset, rng)
        # Then what differs from the log: other estimates, and which jobs count.
        columns: dict[str, NDArray[Any]] = {}
        if log.estimates != RECORDED:
            run = jobset.duration.astype(np.int64)
            columns["estimate"] = get_estimates(log.estimates)(rng, run)
        if log.warmup:
            columns["counted"] = (jobset.arrival >= log.warmup).astype(np.int8)
        if columns:
            jobset = replace(jobset, attributes={**jobset.attributes, **columns})
        # The world draws last, so that a window is the same in every world.
        return log.served(jobset, rng)
