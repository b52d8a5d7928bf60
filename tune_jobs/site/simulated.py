"""A site that does not exist: jobs of a log, on a clock that may run faster than ours.

It does what Slurm does with a queue: what is not held starts by a rule, and what ends makes room.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cluster_env.core.jobs import JobSet
from rllib_configs.snapshot import (
    BLOCKED,
    HELD,
    RUNNING,
    WAITING,
    Adviser,
    Queue,
    SiteJob,
    SiteNode,
    Snapshot,
)
from tune_jobs.site.backend import Site
from tune_jobs.site.commands import SiteAway
from tune_jobs.site.controller import HELD_BY_USER
from tune_jobs.site.placing import fits, in_all, less


class SimulatedBackend:
    """A site with one node that has all processors.

    Args:
        jobset: of the world `hpc`: processors, then memory and GPUs if they are counted.
        capacity: units of each resource that jobs ask for.
        rule: what starts jobs that are not held.
        held: whether jobs are submitted held.
        speed: seconds of the site in one of ours.
        clock: our seconds.
    """

    def __init__(
        self,
        jobset: JobSet,
        capacity: Sequence[int],
        rule: Adviser,
        *,
        held: bool,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capacity = _three(capacity)
        self._rule, self._held, self._speed, self._clock = rule, held, speed, clock
        self._began = clock()
        limit = np.asarray(jobset.attributes.get("estimate", jobset.duration))
        self._coming = [
            (int(jobset.arrival[k]), int(jobset.duration[k]), int(limit[k]), _three(demand))
            for k, demand in enumerate(jobset.demand)
        ]
        self._jobs: dict[str, SiteJob] = {}
        self._ends: dict[str, int] = {}
        self._time = self._arrived = 0
        self.history: dict[str, tuple[int, int]] = {}
        """Start and end of the jobs that have ended."""
        self.away = False
        """Whether it does not answer, for tests."""

    def site(self) -> Site:
        """See `Backend.site`."""
        return Site("simulated", with_memory=self._capacity[1] > 0)

    @property
    def is_over(self) -> bool:
        """Whether all jobs have ended."""
        return not self.num_coming and not self._jobs

    @property
    def num_coming(self) -> int:
        """Jobs that have not arrived yet."""
        return len(self._coming) - self._arrived

    def read(self) -> Snapshot:
        """See `Backend.read`."""
        self._advance()
        free = self._free()
        node = SiteNode("all", *self._capacity, *free)
        return Snapshot(self._time, tuple(self._jobs.values()), (node,))

    def start(self, jobs: Sequence[str]) -> list[str]:
        """See `Backend.start`."""
        return self._turn(jobs, HELD, WAITING, "None")

    def hold(self, jobs: Sequence[str]) -> list[str]:
        """See `Backend.hold`."""
        return self._turn(jobs, WAITING, HELD, HELD_BY_USER)

    def rank(self, priorities: Sequence[tuple[str, int]]) -> None:
        """See `Backend.rank`; the rule starts jobs in its own order all the same."""
        self._advance()
        for job, rank in priorities:
            if job in self._jobs:
                self._jobs[job] = replace(self._jobs[job], priority=rank)

    def cancel(self, job: str) -> None:
        """Takes a job away, as its user may at any time."""
        self._jobs.pop(job, None)
        self._ends.pop(job, None)

    def _turn(self, jobs: Sequence[str], before: str, after: str, reason: str) -> list[str]:
        self._advance()
        refusals = []
        for name in jobs:
            job = self._jobs.get(name)
            if job is not None and job.state == before:
                self._jobs[name] = replace(job, state=after, reason=reason)
            else:
                refusals.append(f"job {name} is not {before}")
        self._start_waiting()
        return refusals

    def _advance(self) -> None:
        """Lets happen what has happened since the last look, one moment after the other."""
        if self.away:
            raise SiteAway("the simulated site is away")
        now = int((self._clock() - self._began) * self._speed)
        while True:
            arrival = self._coming[self._arrived][0] if self.num_coming else None
            events = [t for t in (arrival, *self._ends.values()) if t is not None and t <= now]
            if not events:
                break
            self._time = min(events)
            for name in [name for name, end in self._ends.items() if end == self._time]:
                self.history[name] = (self._jobs.pop(name).start, self._ends.pop(name))
            while self.num_coming and self._coming[self._arrived][0] <= self._time:
                arrival, _, limit, demand = self._coming[self._arrived]
                self._arrived += 1
                name = str(self._arrived)
                state, reason = (HELD, HELD_BY_USER) if self._held else (WAITING, "None")
                if not fits(demand, self._capacity):
                    state, reason = BLOCKED, "PartitionConfig"
                job = SiteJob(name, state, reason, "", "all", arrival, 0, limit, *demand)
                self._jobs[name] = job
            self._start_waiting()
        self._time = max(now, self._time)

    def _start_waiting(self) -> None:
        waiting = tuple(job for job in self._jobs.values() if job.state == WAITING)
        if not waiting:
            return
        running = tuple(job for job in self._jobs.values() if job.state == RUNNING)
        for name in self._rule(Queue(self._time, self._free(), running, waiting)).starts:
            job = self._jobs[name]
            self._jobs[name] = replace(job, state=RUNNING, reason="", start=self._time)
            self._ends[name] = self._time + self._coming[int(name) - 1][1]

    def _free(self) -> tuple[int, int, int]:
        running = (job.demand for job in self._jobs.values() if job.state == RUNNING)
        return less(self._capacity, in_all([(0, 0, 0), *running]))


def _three(units: Sequence[int]) -> tuple[int, int, int]:
    first, second, third = (*(int(one) for one in units), 0, 0)[:3]
    return first, second, third
