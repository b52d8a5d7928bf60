"""What stands between a policy and a site: a job starts only where it fits and the site lets it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rllib_configs.snapshot import SiteJob, Snapshot
from tune_jobs.site.placing import (
    NO_ROOM,
    Reservation,
    Room,
    Units,
    fits,
    in_all,
    less,
    share_on,
)

POLICY, OVERDUE = "policy", "waited too long"
TOO_MANY = "enough starts for one tick"
UNDER_WAY = "what was released before has not started yet"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a policy may do.

    Attributes:
        most_starts: in one tick; 0 for no limit.
        max_wait_s: a job that has waited for longer goes first in the policy's own plan, where all
            such jobs have room reserved one after the other; 0 for no such bound.
    """

    most_starts: int = 0
    max_wait_s: int = 0

    def is_overdue(self, waited_s: int) -> bool:
        """Whether a job that has waited so long goes before those that have not."""
        return 0 < self.max_wait_s < waited_s


class Guard:
    """Lets jobs start as long as they fit and nobody who has waited too long is delayed.

    Args:
        snapshot: the site.
        limits: what the policy may do.
        running: jobs that run or are about to.
        released: those of them that are about to.
        others_under_way: whether what was released before has not started yet.
        permits: says what the site refuses; None where that is not known.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        limits: Limits,
        running: Iterable[SiteJob],
        released: Iterable[SiteJob],
        others_under_way: bool,
        permits: Any = None,
    ) -> None:
        self.time, self._limits, self._running = snapshot.time, limits, tuple(running)
        self._others_under_way, self._permits = others_under_way, permits
        self._room = Room(snapshot.nodes)
        there = in_all(node.free for node in snapshot.nodes)
        self.free = less(there, in_all(job.demand for job in released))
        self._held: dict[str, dict[str, Units]] = {}
        for job in released:
            if permits is None:
                self._room.place(job)
            else:
                self._place(job)
        self.left = self.free
        self.started: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._begun: list[SiteJob] = []
        self._reserved: Reservation | None = None

    def start_overdue(self, job: SiteJob) -> None:
        """Starts a job that has waited too long, or keeps room for the first that cannot start."""
        self._start(job, OVERDUE)
        if job.job not in self.started and self._reserved is None:
            running = [*self._running, *(replace(one, start=self.time) for one in self._begun)]
            if self._permits is None:
                self._reserved = Reservation(job, self.time, self.left, running)
            else:
                nodes = frozenset[str]().union(*(names for names, _ in self._permits.places(job)))
                free, there = self.on(nodes)
                self._reserved = Reservation(job, self.time, free, there, nodes)

    def start(self, job: SiteJob) -> None:
        """Starts a job that the policy starts, if nothing speaks against it."""
        if job.job not in self.started:
            self._start(job, POLICY)

    def on(self, nodes: frozenset[str]) -> tuple[Units, list[SiteJob]]:
        """What is free on some nodes, and what runs there, each job with its share of them."""
        begun = [replace(one, start=self.time) for one in self._begun]
        shares = (
            (job, share_on(job, nodes, self._held.get(job.job))) for job in (*self._running, *begun)
        )
        running = [
            replace(job, processors=units[0], memory=units[1], gpus=units[2])
            for job, units in shares
            if units[0]
        ]
        return self._room.free_on(nodes), running

    def _start(self, job: SiteJob, why: str) -> None:
        refusal = self._refusal(job) or self._taken(job)
        if refusal:
            self.refused[job.job] = refusal
            return
        self.refused.pop(job.job, None)
        self.started[job.job] = why
        self._begun.append(job)
        self.left = less(self.left, job.demand)
        if self._permits is not None:
            self._permits.take(job)

    def _refusal(self, job: SiteJob) -> str:
        """Why a job does not start, whatever room there is on nodes."""
        most = self._limits.most_starts
        if self._others_under_way:
            return UNDER_WAY
        if most and len(self.started) >= most:
            return TOO_MANY
        if self._permits is not None and (refusal := str(self._permits.refusal(job))):
            return refusal
        return "" if fits(job.demand, self.left) else NO_ROOM

    def _taken(self, job: SiteJob) -> str:
        """Takes room for a job; else says why it gets none."""
        reserved = self._reserved
        if reserved is None or reserved.ends_before(job, self.time):
            return "" if self._place(job) else NO_ROOM
        if reserved.nodes is not None and self._place(job, reserved.nodes):
            return ""  # where nothing is kept
        if not reserved.takes_spare(job):
            return f"it would delay {reserved.job}, which {OVERDUE}"
        return "" if self._place(job) else NO_ROOM

    def _place(self, job: SiteJob, without: frozenset[str] = frozenset()) -> bool:
        """Takes room for a job, in the first of its partitions that has any."""
        if self._permits is None:
            return self._room.place(job)
        for nodes, idle in self._permits.places(job):
            taken = self._room.take(job, nodes - without, idle=idle)
            if taken is not None:
                self._held[job.job] = self._room.by_name(taken)
                return True
        return False
