"""What is to start now: a policy's advice behind a guard. It follows from what is recorded."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rllib_configs.snapshot import (
    HELD,
    RUNNING,
    WAITING,
    Advice,
    Adviser,
    Queue,
    SiteJob,
    Snapshot,
)
from tune_jobs.site.placing import Reservation, Room, fits, in_all, less

POLICY, OVERDUE = "policy", "waited too long"
NO_ROOM, LATER = "no node has room", "the policy starts it later"
TOO_MANY = "enough starts for one tick"
UNDER_WAY = "what was released before has not started yet"
RESTING = "the site did not start it when it was released"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a policy may do.

    Attributes:
        longest_wait_s: a job that has waited for longer goes first, in order of arrival, and has
            room kept for it if it does not fit; 0 for no such limit.
        most_starts: in one tick; 0 for no limit.
        max_wait_s: a job that has waited for longer goes first in the policy's own plan, where all
            such jobs have room reserved one after the other; 0 for no such bound.
    """

    longest_wait_s: int = 0
    most_starts: int = 0
    max_wait_s: int = 0

    def is_overdue(self, waited_s: int) -> bool:
        """Whether a job that has waited so long goes before those that have not."""
        return any(limit and waited_s > limit for limit in (self.longest_wait_s, self.max_wait_s))


@dataclass(frozen=True)
class Past:
    """What earlier decisions have left behind, and no state of the site shows.

    Attributes:
        awaited: jobs that were released and have not started. As long as there are any, nothing
            else starts: a site that starts what two ticks released does so in an order of its own.
        resting: jobs that the site did not start in time, and until when they are left alone.
    """

    awaited: tuple[str, ...] = ()
    resting: Mapping[str, int] = field(default_factory=dict)


NO_PAST = Past()


@dataclass(frozen=True)
class Start:
    """A job to start now; its score is that of the policy's order, lower first, if it has one."""

    job: str
    why: str
    waited_s: int
    score: float | None


@dataclass(frozen=True)
class Held:
    """A job that fits and is held back; until when, by the policy's plan, if that is known."""

    job: str
    why: str
    until: int | None


@dataclass(frozen=True)
class Decision:
    """What is to happen.

    Attributes:
        starts: jobs to start, in this order.
        held: jobs that would fit beside those, but are held back.
        order: all that wait, as the policy would have them: those that start, then by its plan,
            and where it starts several at once by its scores.
    """

    starts: tuple[Start, ...]
    held: tuple[Held, ...]
    order: tuple[str, ...]

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "starts": [asdict(one) for one in self.starts],
            "held": [asdict(one) for one in self.held],
            "order": list(self.order),
        }


def decide(
    snapshot: Snapshot, adviser: Adviser, limits: Limits, state: str, past: Past = NO_PAST
) -> Decision:
    """Which jobs are to start now.

    Args:
        snapshot: the site.
        adviser: the policy.
        limits: what it may do.
        state: of the jobs that may start: ``held`` where they are released, else ``waiting``. Jobs
            that were released and wait for the site to start them count as running.
        past: what was released before.
    """
    now = snapshot.time
    released = snapshot.in_state(WAITING) if state == HELD else ()
    running = (
        *snapshot.in_state(RUNNING),
        *(replace(job, start=now) for job in released),
    )
    waiting = sorted(snapshot.in_state(state), key=lambda job: (job.eligible, job.job))
    candidates = [job for job in waiting if job.job not in past.resting]
    guard = _Guard(snapshot, limits, running, released, bool(past.awaited))
    advice = adviser(Queue(now, guard.free, running, tuple(candidates), limits.max_wait_s))
    by_name = {job.job: job for job in candidates}
    longest = limits.longest_wait_s
    overdue = [job for job in candidates if limits.is_overdue(now - job.eligible)]
    for job in overdue:
        # By the bound alone, a job that the plan does not start yet has its room reserved there.
        if (longest and now - job.eligible > longest) or job.job in advice.starts:
            guard.start_overdue(job)
    for name in advice.starts:
        guard.start(by_name[name])
    starts = [_start(by_name[job], why, now, advice) for job, why in guard.started.items()]
    names = [job.job for job in candidates]
    planned = sorted(
        (name for name in names if name in advice.planned),
        key=lambda name: (advice.planned[name], advice.scores.get(name, 0.0)),
    )
    order = dict.fromkeys(
        [*(job.job for job in overdue), *guard.started, *advice.starts, *planned, *names]
    )
    resting = [job.job for job in waiting if job.job in past.resting]
    held = [
        *_held(candidates, guard, advice),
        *(Held(job, RESTING, past.resting[job]) for job in resting),
    ]
    return Decision(tuple(starts), tuple(held), (*order, *resting))


class _Guard:
    """Lets jobs start as long as they fit and nobody who has waited too long is delayed."""

    def __init__(
        self,
        snapshot: Snapshot,
        limits: Limits,
        running: Iterable[SiteJob],
        released: Iterable[SiteJob],
        others_under_way: bool,
    ) -> None:
        self._time, self._limits, self._running = snapshot.time, limits, tuple(running)
        self._others_under_way = others_under_way
        self._room = Room(snapshot.nodes)
        there = in_all(node.free for node in snapshot.nodes)
        self.free = less(there, in_all(job.demand for job in released))
        for job in released:
            self._room.place(job)
        self.left = self.free
        self.started: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._begun: list[SiteJob] = []
        self._reserved: Reservation | None = None

    def start_overdue(self, job: SiteJob) -> None:
        """Starts a job that has waited too long, or keeps room for the first that cannot start."""
        self._start(job, OVERDUE)
        if job.job not in self.started and self._reserved is None:
            running = [*self._running, *(replace(one, start=self._time) for one in self._begun)]
            self._reserved = Reservation(job, self._time, self.left, running)

    def start(self, job: SiteJob) -> None:
        """Starts a job that the policy starts, if nothing speaks against it."""
        if job.job not in self.started:
            self._start(job, POLICY)

    def _start(self, job: SiteJob, why: str) -> None:
        most = self._limits.most_starts
        if self._others_under_way:
            self.refused[job.job] = UNDER_WAY
        elif most and len(self.started) >= most:
            self.refused[job.job] = TOO_MANY
        elif not fits(job.demand, self.left):
            self.refused[job.job] = NO_ROOM
        elif self._reserved is not None and not self._reserved.allows(job, self._time):
            self.refused[job.job] = f"it would delay {self._reserved.job}, which {OVERDUE}"
        elif not self._room.place(job):
            self.refused[job.job] = NO_ROOM
        else:
            self.refused.pop(job.job, None)
            self.started[job.job] = why
            self._begun.append(job)
            self.left = less(self.left, job.demand)


def _start(job: SiteJob, why: str, now: int, advice: Advice) -> Start:
    return Start(job.job, why, max(now - job.eligible, 0), advice.scores.get(job.job))


def _held(candidates: Iterable[SiteJob], guard: _Guard, advice: Advice) -> Iterable[Held]:
    """Those that would still fit, or that the policy would start but for the guard."""
    for job in candidates:
        if job.job in guard.started:
            continue
        if job.job in guard.refused or fits(job.demand, guard.left):
            why = guard.refused.get(job.job, LATER)
            yield Held(job.job, why, advice.planned.get(job.job))
