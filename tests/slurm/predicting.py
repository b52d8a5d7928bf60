"""What jobs would come to in the simulator, and at a site that has the delays of a real one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from rllib_configs.snapshot import HELD, RUNNING, WAITING, Adviser, SiteJob, SiteNode, Snapshot
from tune_jobs.measuring.trained_runs import find_runs, is_heuristic, load_runs
from tune_jobs.site.backend import Site
from tune_jobs.site.deciding import Limits
from tune_jobs.site.placing import Reservation, Room, in_all
from tune_jobs.site.steering import Steerer, Steering
from tune_jobs.site.ticks import Ticks

Job = Mapping[str, Any]
"""``submit`` and ``seconds`` that it runs, ``cpus``, ``nodes``, ``limit`` in seconds."""


@dataclass(frozen=True, kw_only=True)
class Delays:
    """What a real site loses time with, all in seconds.

    Attributes:
        longer_s: that a job holds its nodes beyond those that it runs.
        tick_s: from look to look of the steerer.
        look_s: that a look takes.
        pass_s: from one scheduling pass of slurmctld to the next; it looks about once a second.
        backfill_s: from one pass that backfills to the next, ``bf_interval``; the passes between
            end with the first job that has to wait.
    """

    longer_s: float = 0.0
    tick_s: float = 0.5
    look_s: float = 0.1
    pass_s: float = 1.0
    backfill_s: float = 2.0


NO_DELAYS = Delays(tick_s=0.1, look_s=0.0, pass_s=0.1, backfill_s=0.1)
"""Next to none."""


def without_delays(jobs: Sequence[Job], name: str, processors: int) -> dict[str, Any]:
    """Starts and run times in the simulator, which knows no nodes, no guard and no delay."""
    world = HPC(processors=processors)
    jobset = JobSet.of(
        [int(job["submit"]) for job in jobs],
        np.array([job["seconds"] for job in jobs]),
        [[job["cpus"]] for job in jobs],
        attributes={"estimate": np.array([job["limit"] for job in jobs])},
    )
    if is_heuristic(name):
        policy: Any = get_heuristic(name, world)
    else:
        policy = load_runs(find_runs([name]), "argmax")[0].policy.acting_in(world)
    schedule = evaluate(policy, [jobset], world)
    demand = schedule.demand[:, 0]
    return {
        "submit": schedule.arrival,
        "start": schedule.start,
        "seconds": schedule.duration,
        "cpus": demand,
    }


def with_delays(
    jobs: Sequence[Job],
    adviser: Adviser | None,
    nodes: Sequence[int],
    delays: Delays,
    limits: Limits,
) -> dict[str, Any]:
    """The same of the steerer itself at a site that has nodes and delays.

    Args:
        jobs: in the order of their submission.
        adviser: the policy; None for the site alone, first come first served with backfilling.
        nodes: processors of each node.
        delays: of the site.
        limits: of the guard.
    """
    site = DelayedSite(jobs, nodes, delays, held=adviser is not None)
    if adviser is None:
        site.sleep(3600.0)
    else:
        ticks = Ticks(
            site,
            lambda entry: None,
            tick_s=delays.tick_s,
            stopping=lambda: site.is_over,
            sleep=site.sleep,
            clock=lambda: site.now,
        )
        Steerer(site, ticks, adviser, "", limits, Steering(act=True), lambda entry: None).run()
    return {
        "submit": np.array([job["submit"] for job in jobs]),
        "start": np.array([site.started[k] for k in range(len(jobs))]),
        "seconds": np.array([job["seconds"] + delays.longer_s for job in jobs]),
        "cpus": np.array([job["cpus"] for job in jobs]),
    }


class DelayedSite:
    """A site on a clock of its own, which starts jobs in passes, and on nodes."""

    def __init__(
        self, jobs: Sequence[Job], nodes: Sequence[int], delays: Delays, *, held: bool
    ) -> None:
        self._delays, self.now = delays, 0.0
        self._next_pass = self._next_backfill = 0.0
        self._coming = list(enumerate(jobs))
        self._seconds = [job["seconds"] + delays.longer_s for job in jobs]
        self._first = HELD if held else WAITING
        self._jobs: dict[int, SiteJob] = {}
        self._nodes = [SiteNode(f"n{k}", size, 0, 0, size, 0, 0) for k, size in enumerate(nodes)]
        self._room = Room(self._nodes)
        self._held: dict[int, tuple[float, list[tuple[int, int, int]]]] = {}
        self.started: dict[int, float] = {}

    @property
    def is_over(self) -> bool:
        """Whether all jobs have ended."""
        return not self._coming and not self._jobs

    def sleep(self, seconds: float) -> None:
        """Lets time go by, with all that happens meanwhile."""
        until = self.now + seconds
        while True:
            events = [self._next_pass, *(end for end, _ in self._held.values())]
            events += [job["submit"] for _, job in self._coming[:1]]
            if self.is_over or min(events) > until:
                break
            self.now = max(self.now, min(events))
            self._submit()
            self._end()
            if self._next_pass <= self.now:
                self._pass()
                self._next_pass = self.now + self._delays.pass_s
        self.now = max(self.now, until)

    def site(self) -> Site:
        """See `Backend.site`."""
        return Site("delayed")

    def read(self) -> Snapshot:
        """See `Backend.read`."""
        free = self._room.free
        nodes = tuple(
            SiteNode(node.name, node.processors, 0, 0, there[0], 0, 0)
            for node, there in zip(self._nodes, free, strict=True)
        )
        snapshot = Snapshot(int(self.now), tuple(self._jobs.values()), nodes)
        self.sleep(self._delays.look_s)
        return snapshot

    def start(self, jobs: Sequence[str]) -> int:
        """See `Backend.start`."""
        return self._turn(jobs, HELD, WAITING)

    def hold(self, jobs: Sequence[str]) -> int:
        """See `Backend.hold`."""
        return self._turn(jobs, WAITING, HELD)

    def rank(self, priorities: Sequence[tuple[str, int]]) -> None:
        """See `Backend.rank`; it has an order of its own."""

    def close(self) -> None:
        """Nothing is kept open."""

    def _turn(self, jobs: Sequence[str], before: str, after: str) -> int:
        for number in map(int, jobs):
            if self._jobs[number].state == before:
                self._set(number, state=after)
        return 0

    def _set(self, number: int, **changes: Any) -> None:
        job = self._jobs[number]
        values = {name: getattr(job, name) for name in SiteJob.__slots__}
        self._jobs[number] = SiteJob(**{**values, **changes})

    def _submit(self) -> None:
        while self._coming and self._coming[0][1]["submit"] <= self.now:
            number, job = self._coming.pop(0)
            self._jobs[number] = SiteJob(
                *(str(number), self._first, "", "", "", int(self.now), 0),
                *(job["limit"], job["cpus"], 0, 0, job["nodes"]),
            )

    def _end(self) -> None:
        for number, (end, held) in list(self._held.items()):
            if end <= self.now:
                self._room.give_back(held)
                del self._held[number], self._jobs[number]

    def _pass(self) -> None:
        """First come first served, with room kept for the first that does not fit."""
        reserved: Reservation | None = None
        backfilling = self._next_backfill <= self.now
        if backfilling:
            self._next_backfill = self.now + self._delays.backfill_s
        for number, job in list(self._jobs.items()):
            if job.state != WAITING:
                continue
            if reserved is not None and not reserved.allows(job, int(self.now)):
                continue
            held = self._room.take(job)
            if held is not None:
                self._set(number, state=RUNNING, start=int(self.now))
                self.started[number] = self.now
                self._held[number] = self.now + self._seconds[number], held
            elif not backfilling:
                return
            elif reserved is None:
                running = [one for one in self._jobs.values() if one.state == RUNNING]
                reserved = Reservation(job, int(self.now), in_all(self._room.free), running)
