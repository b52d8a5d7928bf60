"""Recorded jobs in DeepRM's world: a file in time steps, or a job log in steps of some seconds."""

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads.formats import CSV, READ_OPTIONS, read_log
from cluster_env.workloads.log import LogPart, LogWorkload, warmup_marks
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds.deeprm.cluster import Cluster


@dataclass(frozen=True, kw_only=True)
class DeepRMLog(LogWorkload):
    """Jobs of a file of one's own, in time steps; see `LogWorkload` for what all logs have.

    The file is a CSV in whole time steps with a column for each resource, see
    `cluster_env.workloads.csv_jobs.read_csv_jobs`. Job logs in seconds can be read too, if
    `seconds` says how long a step is. Every job must fit the cluster: none is left out. A window
    begins at any step of its part, also where no job arrives, on an empty cluster.

    Attributes:
        cluster: what has to run the jobs.
        first_step: jobs that arrive before this step of a jobset are left out; with 1 nothing
            arrives in step 0, as in DeepRM's released code.
        seconds: length of a time step in seconds, for a log whose times are seconds; run times are
            rounded up. 1: the log is in time steps.
        units: units of each resource in the log that make one unit of the cluster, rounded up;
            empty: the units are the same.
        jobs: Refused: windows are by time, because episodes end at the world's max_time.
        window: length of a jobset in time steps.
        log_format: format of the log: ``csv`` by default; ``auto`` detects it.
        estimates: Refused: policies see how long jobs last, and no estimates.
        missing_limits: Refused for the same reason.
        hash_users: Refused: jobs of this world have no names.

    Raises:
        InputError: if the file cannot be read, a line of it is wrong, a job cannot run on the
            cluster, the log is too short for one window in each part, or no job arrives in a part.
    """

    refused: ClassVar = MappingProxyType(
        {
            "jobs": "windows are by time, because episodes end at task.world.max_time",
            "estimates": "policies see how long jobs last",
            "missing_limits": "policies see how long jobs last",
            "hash_users": "its jobs have no names",
        }
    )
    may_be_empty: ClassVar[bool] = True

    cluster: Cluster = field(default_factory=Cluster, kw_only=False)
    first_step: int = 0
    seconds: int = 1
    units: tuple[int, ...] = ()
    window: int = 50
    log_format: str = CSV

    def __post_init__(self) -> None:
        if self.window < 1 or not 0 <= self.first_step < self.window:
            raise InputError(
                f"the arrival window needs at least 1 step and first_step inside it, but window="
                f"{self.window} and first_step={self.first_step} were given"
            )
        if self.seconds < 1 or any(units < 1 for units in self.units):
            raise InputError(
                f"seconds and units must be 1 or more, but {self.seconds} and {list(self.units)} "
                f"were given"
            )
        if len(self.units) not in (0, self.cluster.num_resources):
            raise InputError(
                f"units needs a number for each of the cluster's {self.cluster.num_resources} "
                f"resources, but {list(self.units)} was given"
            )
        super().__post_init__()
        needed = math.ceil(round(self.longest_window / self.shortest_share, 6))
        if self.recorded.span < needed:
            shares = (end - begin for begin, end in map(self._shares, Split))
            training, validation, held_out = (f"{100 * share:.0f} %" for share in shares)
            raise InputError(
                f"the trace {self.path} is too short: its arrivals span {self.recorded.span} "
                f"steps, but windows of {self.longest_window} steps need {needed}, so that one "
                f"fits into each of its parts ({training} training, {validation} validation, "
                f"{held_out} held out); take a longer trace or a smaller window"
            )

    @property
    def longest_window(self) -> int:
        """Time steps of a jobset with its warm-up."""
        return self.window + self.warmup

    @property
    def shortest_share(self) -> float:
        """Share of the log's time that its shortest part has."""
        return min(round(end - begin, 9) for begin, end in map(self._shares, Split))

    def after(self, steps: int) -> LogPart:
        """Windows of so many steps of the part for training: what may arrive after an instant."""
        windows = replace(self, window=steps, first_step=0, warmup=0, offset=-1, block=0)
        return windows.part(Split.TRAIN)

    def read(self) -> RecordedJobs:
        """All jobs of the file; the latest files are remembered."""
        options = {name: getattr(self, name) for name in READ_OPTIONS}
        return read_log(self.path, num_resources=self.cluster.num_resources, **options)

    def fitting(self, read: RecordedJobs) -> RecordedJobs:
        """The jobs in steps and units of the cluster, which all have to fit.

        Raises:
            InputError: if one is too large or too long, or of a class that the cluster does not
                have; it names the first one in the file.
        """
        num_resources = self.cluster.num_resources
        jobs = read if len(read.resources) == num_resources else read.without(read.optional)
        if len(jobs.resources) != num_resources:
            raise InputError(
                f"the jobs of {jobs.path} ask for {' and '.join(jobs.resources)}, but the cluster "
                f"has {num_resources} resources"
            )
        if self.seconds > 1:
            run = -(-jobs.run // self.seconds)
            jobs = replace(jobs, submit=jobs.submit // self.seconds, run=run, estimate=run)
        if self.units:
            jobs = replace(jobs, demand=-(-jobs.demand // np.asarray(self.units)))
        self._require_fit(jobs)
        return jobs

    def load_of(self, recorded: RecordedJobs, span: int) -> float:
        """Mean demand over capacity, in the mean over resources."""
        work = recorded.run @ recorded.demand
        return float(np.mean(work / np.asarray(self.cluster.capacity)) / span)

    def served(self, jobset: JobSet, rng: np.random.Generator) -> JobSet:
        """The window without jobs that arrive too early, and with what the world has of a job."""
        first = int(np.searchsorted(jobset.arrival, self.first_step))
        return replace(jobset, attributes=warmup_marks(jobset)).select(slice(first, None))

    def _require_fit(self, jobs: RecordedJobs) -> None:
        cluster = self.cluster
        if jobs.job_class is not None and (jobs.job_class >= cluster.num_classes).any():
            faulty = np.flatnonzero(jobs.job_class >= cluster.num_classes)
            job = int(faulty[np.argmin(jobs.line[faulty])])
            raise InputError(
                f"{jobs.path}, line {jobs.line[job]}: the job has class {jobs.job_class[job]}, but "
                f"classes count from 0 and the cluster has {cluster.num_classes}; give it "
                f"num_classes={int(jobs.job_class.max()) + 1}, or leave out the column class"
            )
        too_large = jobs.demand > np.asarray(cluster.capacity)
        faulty = np.flatnonzero(too_large.any(axis=1) | (jobs.run > cluster.horizon))
        if not faulty.size:
            return
        job = int(faulty[np.argmin(jobs.line[faulty])])
        if too_large[job].any():
            resource = int(np.argmax(too_large[job]))
            fault = (
                f"the job asks for {jobs.demand[job, resource]} units of "
                f"{jobs.resources[resource]}, but the cluster has only {cluster.capacity[resource]}"
            )
        else:
            fault = (
                f"the job lasts {jobs.run[job]} steps, but the cluster's horizon is only "
                f"{cluster.horizon}"
            )
        raise InputError(
            f"{jobs.path}, line {jobs.line[job]}: {fault} ({faulty.size:,} of {jobs.num_jobs:,} "
            f"jobs do not fit); give the cluster more, or read the trace in larger units (units) "
            f"and longer steps (seconds)"
        )
