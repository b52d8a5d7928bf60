"""Jobs of a site's own log, cut into jobsets."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import Attributes, JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads.estimates import get_estimates
from cluster_env.workloads.hashing import hashed
from cluster_env.workloads.logs import AUTO, read_log
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.run_times import RUN_TIMES, USER, corrected
from cluster_env.workloads.windows import (
    natural_length,
    resampled,
    window_by_count,
    window_by_time,
)

RECORDED = "recorded"
"""The estimates that stand in the log."""


@dataclass(frozen=True)
class TracePart:
    """A stretch of a log.

    Attributes:
        recorded: its jobs.
        capacity: units of each resource of the machine.
        jobs: in a jobset; None where a jobset is as long as `window`.
        window: seconds of a jobset, without its warm-up.
        warmup: seconds before them in which jobs arrive that do not count.
        offset: jobs, or seconds, from its beginning to that of every jobset; below 0, any.
        block: seconds of the blocks that jobsets are put together from; 0 for none.
        estimates: `RECORDED`, or the kind of estimates that replaces them.
    """

    recorded: RecordedJobs
    capacity: tuple[int, ...]
    jobs: int | None
    window: int
    offset: int = -1
    block: int = 0
    estimates: str = RECORDED
    warmup: int = 0

    @property
    def load(self) -> float:
        """Measured mean demand for processors over what there is; 0.7 is 70 %."""
        return float(self.recorded.load(self.capacity)[0])

    @property
    def num_disjoint(self) -> int:
        """Windows that fit side by side into it, sharing no job, not even of the warm-up."""
        if self.offset >= 0 and not self.block:
            return 1
        if self.jobs is None:
            return max(1, self.recorded.span // (self.window + self.warmup))
        return max(1, self.recorded.num_jobs // max(1, self.jobs))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts a window out of it; the same generator state gives the same jobset."""
        source, offset, length = self.recorded, self.offset, self.window + self.warmup
        if self.block:
            wanted = (self.jobs, 0) if self.jobs is not None else (0, length)
            source = resampled(source, self.block, *wanted, rng)
            offset = 0
        if self.jobs is None:
            made = window_by_time(source, length, offset, rng)
        else:
            made = window_by_count(source, self.jobs, offset, rng)
        columns: dict[str, NDArray[Any]] = {}
        if self.estimates != RECORDED:
            columns["estimate"] = get_estimates(self.estimates)(rng, made.duration.astype(np.int64))
        if self.warmup:
            columns["counted"] = (made.arrival >= self.warmup).astype(np.int8)
        return self._with_columns(made, columns) if columns else made

    @staticmethod
    def _with_columns(made: JobSet, columns: dict[str, NDArray[Any]]) -> JobSet:
        columns = {**made.attributes, **columns}
        return JobSet(
            made.arrival,
            made.duration,
            made.demand,
            made.window,
            made.job_class,
            Attributes(columns, made.num_jobs),
        )


@dataclass(frozen=True)
class TraceWorkload:
    """Jobs of a log of one's own: SWF, CSV in seconds or what Slurm writes, plain or with gzip.

    A jobset is a window of the log, by count or by time; the machine is empty when its first job
    arrives. The
    splits share no job: training windows lie in the first part of the log's time, validation
    windows in the next and held-out windows in the last. Windows of one split may overlap.

    Attributes:
        path: the file.
        capacity: units of each resource of the machine.
        resources: their names.
        jobs: in a jobset; 0 for all jobs of a split. If it is not set, `window` counts.
        window: seconds of a jobset, from the first moment in which a job may arrive to the last; 0
            for 20 mean run times, or the time in which 256 jobs are submitted, if that is longer.
        offset: where in its split every jobset begins: with which job if `jobs` is set, else after
            how many seconds; below 0, anywhere.
        stretch: factor on all times of submission: 0.5 doubles the load.
        scaled_load: load that times of submission are stretched to have, over the whole log; 0 to
            leave them as they are.
        warmup: seconds before a window whose jobs are scheduled too, so that the window begins on
            a machine that is as full as the policy keeps it, but cost nothing and are not measured.
            It goes with windows by time; `compare` sets a warm-up of its own.
        block: seconds of the blocks that jobsets are put together from, drawn with replacement,
            such as 86400 for days; 0 for windows as they were.
        splits: shares of the log's time at which training and validation windows end.
        whole: whether every split has all jobs of the log, to replay it as it was; one jobset holds
            them all, unless `jobs` or `window` is set.
        estimates: ``recorded``, or the kind of estimates that replaces those of the log, as
            ``exact``, ``gaussian:0.5`` or ``tsafrir``.
        run_times: what rules and policies believe of run times in place of the estimates: ``user``,
            the estimates; ``recent``, the mean of the user's last two; ``learned``; or ``actual``.
            See `cluster_env.workloads.run_times`.
        log_format: ``auto``, ``swf``, ``csv``, ``sacct`` or ``jobcomp``; see
            `cluster_env.workloads.logs.read_log`.
        time_zone: of the times in a log of Slurm that name none; UTC if it is empty.
        hash_users: whether names of users and groups are replaced by hashes.

    Raises:
        InputError: if the file cannot be read, no job fits the machine, or a split has no jobs.
    """

    path: Path | str
    capacity: tuple[int, ...] = (256,)
    resources: tuple[str, ...] = ("processors",)
    jobs: int | None = None
    window: int = 0
    offset: int = -1
    stretch: float = 1.0
    scaled_load: float = 0.0
    block: int = 0
    splits: tuple[float, float] = (0.6, 0.8)
    whole: bool = False
    estimates: str = RECORDED
    run_times: str = USER
    warmup: int = 0
    log_format: str = AUTO
    time_zone: str = ""
    hash_users: bool = False

    def __post_init__(self) -> None:
        self._check_settings()
        if self.estimates != RECORDED:
            get_estimates(self.estimates)
        for split in Split:
            recorded = self._stretch_of(split)
            where = f"the {split.name.lower().replace('_', '-')} part"
            if not recorded.num_jobs:
                begin, end = self._shares(split)
                raise InputError(
                    f"no job of {self.path} was submitted between {begin:.0%} and {end:.0%} of its "
                    f"time, {where}; whole=true takes all jobs for each, splits=[0.6, 0.8] says "
                    f"where parts end"
                )
            most, what = (recorded.num_jobs, "jobs") if self.jobs else (recorded.span, "seconds")
            if self.offset >= most:
                raise InputError(
                    f"offset is {self.offset:,}, but {where} of {self.path} has {most:,} {what}"
                )

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.path).name

    @property
    def load(self) -> float:
        """Measured load of the whole log; that of a split is ``part(split).load``."""
        return float(self.recorded.load(self.capacity)[0])

    @cached_property
    def recorded(self) -> RecordedJobs:
        """All jobs that fit the machine, at the times of submission that were asked for."""
        machine = f"the machine of {self.capacity[0]:,} processors"
        read = self._read
        fitting = (hashed(read) if self.hash_users else read).that_fit(
            self.capacity, machine, self.resources
        )
        factor = self.stretch
        if self.scaled_load:
            factor = float(fitting.load(self.capacity)[0]) / self.scaled_load
        return corrected(fitting.stretched(factor), self.run_times)

    @property
    def num_too_large(self) -> int:
        """Jobs that are left out because the machine is smaller."""
        return self._read.num_jobs - self.recorded.num_jobs

    @property
    def _read(self) -> RecordedJobs:
        return read_log(self.path, self.log_format, self.time_zone)

    def part(self, split: Split) -> TracePart:
        """The stretch of the log that the jobsets of a split come from."""
        return self._part_of(self._stretch_of(split))

    def before_held_out(self) -> TracePart:
        """The stretch of the log before its held-out jobs, or all of it with `whole`."""
        recorded = self.recorded
        return self._part_of(recorded if self.whole else recorded.between(0.0, self.splits[1]))

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Cuts a window out of the whole log; `sample_jobsets` keeps the splits apart."""
        return self._part_of(self.recorded).sample(rng)

    def _part_of(self, recorded: RecordedJobs) -> TracePart:
        everything = self.jobs == 0 or (self.whole and self.jobs is None and not self.window)
        return TracePart(
            recorded,
            self.capacity,
            recorded.num_jobs if everything else self.jobs,
            self.window or natural_length(self.recorded),
            self.offset,
            self.block,
            self.estimates,
            self.warmup,
        )

    def _stretch_of(self, split: Split) -> RecordedJobs:
        return self.recorded if self.whole else self.recorded.between(*self._shares(split))

    def _shares(self, split: Split) -> tuple[float, float]:
        """Between which shares of the log's time the jobs of a split were submitted."""
        trained, validated = self.splits
        return {
            Split.TRAIN: (0.0, trained),
            Split.VALIDATION: (trained, validated),
            Split.HELD_OUT: (validated, 1.0),
        }[split]

    def _check_settings(self) -> None:
        if (self.jobs is not None and self.jobs < 0) or min(self.window, self.block) < 0:
            raise InputError(
                f"jobs, window and block must be 0 or more, but {self.jobs}, {self.window:,} and "
                f"{self.block:,} were given"
            )
        if self.warmup < 0 or (self.warmup and (self.jobs is not None or self.whole)):
            raise InputError(
                f"warmup must be 0 or more seconds, and goes with windows by time (so neither with "
                f"jobs nor with whole), but {self.warmup:,} was given"
            )
        if self.jobs is not None and self.window:
            raise InputError(
                f"a jobset has {self.jobs:,} jobs or lasts {self.window:,} s; give one of the two"
            )
        if self.scaled_load < 0 or (self.scaled_load and self.stretch != 1):
            raise InputError(
                f"scaled_load must be above 0, and goes without stretch, but {self.scaled_load:g} "
                f"and {self.stretch:g} were given"
            )
        RUN_TIMES.get(self.run_times)
        if self.estimates != RECORDED and self.run_times != USER:
            raise InputError(
                f"run_times corrects recorded estimates; give run_times={self.run_times} or "
                f"estimates={self.estimates}, not both"
            )
        if not 0 < self.splits[0] < self.splits[1] < 1:
            raise InputError(
                f"splits must be two rising shares of the log's time, as [0.6, 0.8], but "
                f"{list(self.splits)} was given"
            )
