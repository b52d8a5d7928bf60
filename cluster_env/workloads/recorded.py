"""Recorded jobs, before they become jobsets: from any file format, in seconds, any machine."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST, JobSet, no_classes
from cluster_env.workloads.numbers import as_shown

NOTHING = -1
"""What files write where a number is not known."""


@dataclass(frozen=True)
class Dropped:
    """Jobs of a file that cannot be scheduled; the reason ends the sentence "the job ..."."""

    reason: str
    count: int
    line: int  # of the file, where the first of them stands


@dataclass(frozen=True)
class Noticed:
    """What a reader met in a file and made something of, such as a job without a time limit."""

    what: str
    count: int
    line: int  # of the file, where the first of them stands


@dataclass(frozen=True, eq=False)
class RecordedJobs:
    """Jobs by time of submission.

    Attributes:
        path: the file that they come from.
        submit: int64 ``(num_jobs,)``, seconds, never falling.
        run: int64 ``(num_jobs,)``, seconds, at least 1.
        estimate: int64 ``(num_jobs,)``, seconds, at least 1: what the user asked for.
        demand: int64 ``(num_jobs, num_resources)``, processors first.
        resources: names of the resources.
        ids: further whole numbers by name, such as ``user``: small ones, from 0.
        line: int64 ``(num_jobs,)``, the line of the file.
        names: what the numbers of `ids`, and of some of `details`, stand for, by the same names:
            as the file has it.
        wait: int64 ``(num_jobs,)``, seconds that each job waited at the site from when it could
            start; None if the file does not say it of all.
        delay: int64 ``(num_jobs,)``, seconds from `submit` until each job could start at the site,
            because others had to end before; None if none had to.
        processors: size of the machine, where the file says it.
        epoch: Unix time of second 0 of the log's clock, where the file says it.
        dropped: what was left out.
        noticed: what was kept, but is not what it seems.
        rows: of the file; each is a job, or counted in `dropped` before `that_fit`. 0 where all
            rows are jobs.
        optional: resources that a machine need not count.
        job_class: uint8 ``(num_jobs,)``, the class of each job; None if the file has no classes.
        details: whole numbers that only a site's description makes use of, by name, int64
            ``(num_jobs,)``, as far as the file has any: see `cluster_env.workloads.details`.
        attributes: of jobs at a site (`cluster_env.sites`), by name, int64
            ``(num_jobs,)`` or ``(num_jobs, k)``; jobsets have them, too.
    """

    path: Path
    submit: NDArray[np.int64]
    run: NDArray[np.int64]
    estimate: NDArray[np.int64]
    demand: NDArray[np.int64]
    resources: tuple[str, ...]
    ids: Mapping[str, NDArray[np.int64]]
    line: NDArray[np.int64]
    names: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    wait: NDArray[np.int64] | None = None
    delay: NDArray[np.int64] | None = None
    processors: int | None = None
    epoch: int | None = None
    dropped: tuple[Dropped, ...] = field(default=())
    noticed: tuple[Noticed, ...] = field(default=())
    rows: int = 0
    optional: tuple[str, ...] = ()
    job_class: NDArray[np.uint8] | None = None
    details: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, **columns: Any) -> "RecordedJobs":
        """Builds it, and makes sure that the log's times can be counted.

        Raises:
            InputError: if it spans more than 68 years.
        """
        jobs = cls(path, **columns)
        span = int(jobs.submit[-1] - jobs.submit[0])
        if span >= LARGEST:
            raise InputError(
                f"the jobs of {path} were submitted over {span:,} seconds, but at most "
                f"{LARGEST:,} are possible; is the time in line {jobs.line[-1]} right?"
            )
        return jobs

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return int(self.submit.size)

    def load(self, capacity: Sequence[int], span: int | None = None) -> NDArray[np.float64]:
        """Work over what a machine can do in a span, float64 ``(num_resources,)``; 0.7 is 70 %.

        The span is in seconds, by default from the first submission to the last.
        """
        work = self.run.astype(np.float64) @ self.demand
        return np.asarray(work / np.asarray(capacity) / (span or self.span), np.float64)

    @property
    def eligible(self) -> NDArray[np.int64]:
        """When each job could start at the site, int64 ``(num_jobs,)``."""
        return self.submit if self.delay is None else self.submit + self.delay

    @property
    def start(self) -> NDArray[np.int64]:
        """When each job started at the site, int64 ``(num_jobs,)``; at once if no file says it."""
        return self.eligible if self.wait is None else self.eligible + self.wait

    @cached_property
    def most_in_use(self) -> NDArray[np.int64] | None:
        """Units of each resource that jobs held at once at the site, int64 ``(num_resources,)``.

        None where the file does not say of all jobs how long they waited.
        """
        if self.wait is None:
            return None
        start = self.start
        times = np.concatenate([start + self.run, start])
        held = np.concatenate([-self.demand, self.demand])
        # Stable: at one moment the jobs that end give back before others start.
        order = np.argsort(times, kind="stable")
        return np.asarray(np.cumsum(held[order], axis=0).max(axis=0))

    @property
    def span(self) -> int:
        """Seconds from the first submission to the last, and one more."""
        return int(self.submit[-1] - self.submit[0]) + 1

    def select(
        self, rows: slice | NDArray[Any], submit: NDArray[np.int64] | None = None
    ) -> "RecordedJobs":
        """Some of the jobs: rows in rising order or a mask; in any order, with other `submit`."""
        names = ("submit", "run", "estimate", "demand", "line")
        own: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        if submit is not None:
            own["submit"] = submit
        for name in ("wait", "delay", "job_class"):
            if getattr(self, name) is not None:
                own[name] = getattr(self, name)[rows]
        for name in ("ids", "details", "attributes"):
            own[name] = {key: column[rows] for key, column in getattr(self, name).items()}
        return replace(self, **own)

    def between(self, begin: float, end: float) -> "RecordedJobs":
        """Jobs submitted in a stretch of the log's time, from share ``begin`` to share ``end``."""
        first = int(self.submit[0])
        # Whole seconds, so that two parts that meet share no job and lose none.
        stops = [first + int(self.span * share) for share in (begin, end)]
        return self.select(slice(*np.searchsorted(self.submit, stops)))

    def stretched(self, factor: float) -> "RecordedJobs":
        """The same jobs with all times of submission multiplied, and rounded down.

        A factor below 1 raises the load; 0.5 doubles it.

        Raises:
            InputError: if the factor is not above 0.
        """
        if not 0 < factor < float("inf"):
            raise InputError(f"times can be stretched by factors above 0, not by {factor:g}")
        if factor == 1:
            return self
        return replace(self, submit=np.floor(self.submit * factor).astype(np.int64))

    def that_fit(
        self,
        capacity: Sequence[int],
        machine: str,
        resources: Sequence[str] = ("processors", "memory", "gpus"),
    ) -> "RecordedJobs":
        """The jobs that can run on an empty machine; the others are counted as dropped.

        The machine, called so in messages, has a capacity of each of the first of the resources.

        Raises:
            InputError: if none is left, or jobs ask for other resources than the machine counts.
        """
        counted = tuple(resources[: len(capacity)])
        # What the log may leave out is left out, where the machine does not count it.
        spare = set(self.resources) & set(self.optional) - set(counted)
        if spare:
            return self.without(spare).that_fit(capacity, machine, resources)
        if self.resources != counted:
            raise InputError(
                f"the jobs of {self.path} ask for {' and '.join(self.resources)}, but "
                f"{machine} counts {' and '.join(counted)}; give the amount of each, or "
                "leave out columns"
            )
        too_large = np.asarray((self.demand > np.asarray(capacity)).any(axis=1))
        if not too_large.any():
            return self
        if too_large.all():
            raise InputError(
                f"all {self.num_jobs:,} jobs of {self.path} are larger than {machine}; the "
                f"smallest asks for {self.demand[:, 0].min():,} processors"
            )
        return self.leaving_out(too_large, f"is larger than {machine}")

    def leaving_out(self, lost: NDArray[np.bool_], why: str) -> "RecordedJobs":
        """The other jobs; these are counted as dropped for a reason."""
        if not lost.any():
            return self
        dropped = Dropped(why, int(lost.sum()), int(self.line[lost].min()))
        return replace(self.select(~lost), dropped=(*self.dropped, dropped))

    def of_partition(self, name: str) -> "RecordedJobs":
        """The jobs of one queue or partition, by its name or number; others count as dropped.

        What the file says of the machine is not said of the partition, and does not count then.

        Raises:
            InputError: if no job has it; the message lists the largest.
        """
        kinds = [self.names["queue"][self.ids["queue"]].astype(str)] if "queue" in self.ids else []
        if "partition" in self.details:
            kinds.append(self.details["partition"].astype(str))
        inside = next((kind == name for kind in kinds if (kind == name).any()), None)
        if inside is None:
            shown = []
            for kind in kinds:
                texts, counts = np.unique(kind, return_counts=True)
                shown += [f"{texts[k]} ({counts[k]:,} jobs)" for k in np.argsort(-counts)[:5]]
            raise InputError(
                f"no job of {self.path} is of the partition or queue '{as_shown(name)}'; there are "
                f"{', '.join(shown) or 'none'}"
            )
        others = ~np.asarray(inside)
        if not others.any():
            return self
        part = self.leaving_out(others, f"is of another partition than {name}")
        ids, names = {}, dict(part.names)
        for key, numbers in part.ids.items():
            ids[key], used = to_ids(numbers)
            names[key] = part.names[key][used]
        return replace(part, ids=ids, names=names, processors=None)

    def without(self, resources: Collection[str]) -> "RecordedJobs":
        """The same jobs, where some resources are not counted."""
        kept = [k for k, name in enumerate(self.resources) if name not in resources]
        names = tuple(self.resources[k] for k in kept)
        return replace(self, demand=self.demand[:, kept], resources=names)

    def jobset(
        self, rows: slice = slice(None), *, begin: int | None = None, window: int = 0
    ) -> JobSet:
        """Jobs as a jobset with ``estimate``, ``submit``, `ids` and `attributes`.

        Attributes of a site go before `ids` of the same name.

        Second ``begin`` of the log's clock becomes 0, by default the first job's; the window is in
        seconds, by default up to the last. ``submit`` is in seconds of the log's clock.
        """
        submit = self.submit[rows]
        arrival = submit - (submit[0] if begin is None else begin)
        if arrival.max(initial=0) >= LARGEST:
            raise InputError(
                f"jobs of {self.path} would be submitted over {arrival[-1]:,} seconds, but at "
                f"most {LARGEST:,} are possible; take fewer of them"
            )
        return JobSet(
            arrival.astype(np.int32),
            self.run[rows].astype(np.int32),
            self.demand[rows].astype(np.int32),
            window,
            no_classes() if self.job_class is None else self.job_class[rows],
            {
                "estimate": self.estimate[rows],
                "submit": submit,
                **{name: ids[rows] for name, ids in self.ids.items()},
                **{name: column[rows] for name, column in self.attributes.items()},
            },
        )


def to_ids(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Small numbers from 0 for names of any size, and the names by these numbers, rising."""
    names, ids = np.unique(values, return_inverse=True)
    return ids.astype(np.int64).reshape(values.shape), names
