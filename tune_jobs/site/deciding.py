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
from tune_jobs.site.advising import advised, advised_by_partition, permits_of
from tune_jobs.site.guard import OVERDUE, POLICY, TOO_MANY, UNDER_WAY, Guard, Limits
from tune_jobs.site.placing import NO_ROOM, fits

__all__ = ["NO_ROOM", "OVERDUE", "POLICY", "TOO_MANY", "UNDER_WAY", "Decision", "Limits", "decide"]

LATER = "the policy starts it later"
RESTING = "the site did not start it when it was released"


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
    permits = permits_of(snapshot, running, candidates)
    guard = Guard(snapshot, limits, running, released, bool(past.awaited), permits)
    if permits is None:
        queue = Queue(now, guard.free, running, tuple(candidates), limits.max_wait_s)
        advice = advised(adviser, queue, guard, limits)
    else:
        advice = advised_by_partition(adviser, permits, guard, candidates, limits)
    by_name = {job.job: job for job in candidates}
    overdue = [job for job in candidates if limits.is_overdue(now - job.eligible)]
    starts = [
        Start(job, why, max(now - by_name[job].eligible, 0), advice.scores.get(job))
        for job, why in guard.started.items()
    ]
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


def _held(candidates: Iterable[SiteJob], guard: Guard, advice: Advice) -> Iterable[Held]:
    """Those that would still fit, or that the policy would start but for the guard."""
    for job in candidates:
        if job.job in guard.started:
            continue
        if job.job in guard.refused or fits(job.demand, guard.left):
            why = guard.refused.get(job.job, LATER)
            yield Held(job.job, why, advice.planned.get(job.job))
