"""A policy in charge of a site's queue."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from cluster_env.core.errors import Failure
from rllib_configs.snapshot import HELD, RUNNING, WAITING, Adviser, Snapshot
from tune_jobs.site.backend import Backend
from tune_jobs.site.commands import Forbidden, SiteAway
from tune_jobs.site.deciding import NO_PAST, Decision, Limits, Past, decide
from tune_jobs.site.journal import Write, tick_entry
from tune_jobs.site.ranking import new_priorities
from tune_jobs.site.releases import Releases
from tune_jobs.site.ticks import Ticks

NEEDS_OPERATOR = (
    "Slurm does not let this account change others' jobs; as an administrator, "
    "`sacctmgr add user NAME account=ACCOUNT AdminLevel=Operator`"
)
RELEASE, PRIORITY = "release", "priority"


@dataclass(frozen=True, kw_only=True)
class Steering:
    """How a site is steered.

    Attributes:
        mode: ``release``: held jobs are released when they are to start. ``priority``: jobs get
            priorities in the policy's order, and the site starts them.
        act: whether anything is done; else all is decided and recorded, and nothing more.
        rehold_s: seconds after which a released job that has not started is held again; 0: never,
            and then no release waits for the starts of earlier ones.
        hold_new: whether jobs that somebody submitted without a hold are held.
        until_empty: whether this ends when nothing runs or waits.
    """

    mode: str = RELEASE
    act: bool = False
    rehold_s: float = 30.0
    hold_new: bool = False
    until_empty: bool = False


class Watch(Protocol):
    """What watches a steerer."""

    def beat(self) -> None:
        """Takes a sign of progress: a tick was completed."""

    def reason_to_end(self) -> str:
        """Why nothing more may be done; nothing if it may."""


class Unwatched:
    """Nothing watches a steerer that holds no jobs, or does nothing."""

    def beat(self) -> None:
        """See `Watch.beat`."""

    def reason_to_end(self) -> str:
        """See `Watch.reason_to_end`."""
        return ""


class Steerer:
    """Decides at each tick, records it, and acts.

    Args:
        backend: the site.
        ticks: when it is read.
        adviser: the policy.
        policy: its name.
        limits: of the guard.
        steering: how.
        write: takes a line for all that is decided and done.
        watch: what watches it.
        clock: seconds of the site that go by, and that nobody sets back.
    """

    def __init__(
        self,
        backend: Backend,
        ticks: Ticks,
        adviser: Adviser,
        policy: str,
        limits: Limits,
        steering: Steering,
        write: Write,
        watch: Watch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend, self._ticks, self._adviser, self._policy = backend, ticks, adviser, policy
        self._limits, self._steering, self._write = limits, steering, write
        self._watch, self._clock = watch or Unwatched(), clock
        self._releases, self._refusal = Releases(steering.rehold_s), ""
        self._summary = {"ticks": 0, "started": 0, "reheld": 0, "refused": 0}

    def run(self) -> dict[str, Any]:
        """Steers until somebody stops it, or it may do nothing more; returns what was done.

        Raises:
            Failure: if the site forbids what is to be done.
        """
        while (found := self._ticks.look()) is not None:
            snapshot, _ = found
            if self._steering.until_empty and not snapshot.in_state(HELD, WAITING, RUNNING):
                break
            releasing = self._steering.mode == RELEASE
            state = HELD if releasing else WAITING
            past = self._releases.past(snapshot, self._clock()) if releasing else NO_PAST
            decision = decide(snapshot, self._adviser, self._limits, state, past)
            entry = tick_entry(
                self._ticks.num, self._policy, self._limits, state, snapshot, past, decision
            )
            changes = self._changes(snapshot, past, decision)
            self._write({**entry, **changes, "acts": self._steering.act})
            self._summary["ticks"] += 1
            if self._watch.reason_to_end():
                break
            try:
                if self._steering.act:
                    self._act(changes)
                self._note_outcome()
            except Forbidden as error:
                raise Failure(f"{NEEDS_OPERATOR} ({error})") from None
            except SiteAway as error:
                self._ticks.note_away(error)
        return self._summary

    def _changes(self, snapshot: Snapshot, past: Past, decision: Decision) -> dict[str, Any]:
        """What is to be done at the site, beside what was decided."""
        if self._steering.mode == PRIORITY:
            current = {job.job: job.priority for job in snapshot.in_state(WAITING)}
            return {"ranks": new_priorities(decision.order, current)}
        waiting = (job.job for job in snapshot.in_state(WAITING))
        new = [job for job in waiting if job not in self._releases]
        return {
            "release": [one.job for one in decision.starts],
            "rehold": self._releases.late(snapshot, past, self._clock()),
            "hold": new if self._steering.hold_new else [],
        }

    def _act(self, changes: dict[str, Any]) -> None:
        if self._steering.mode == PRIORITY:
            self._backend.rank(changes["ranks"])
            return
        self._releases.note(changes["release"], self._clock())  # also if no answer comes
        self._releases.note_held(changes["rehold"], self._clock())
        refusals = self._backend.start(changes["release"])
        self._summary["started"] += len(changes["release"])
        if back := [*changes["rehold"], *changes["hold"]]:
            refusals += self._backend.hold(back)
            self._summary["reheld"] += len(changes["rehold"])
        self._summary["refused"] += len(refusals)
        self._refusal = refusals[-1] if refusals else self._refusal

    def _note_outcome(self) -> None:
        """A tick is progress, unless several jobs stay held although they were released.

        One alone may have a reason of its own, and does not end the steering of all others.
        """
        refused = sorted(self._releases.refused)
        problem = f"job {refused[0]} stays held when it is released" if refused else ""
        if problem and self._refusal:
            problem += f": {self._refusal}"
        if len(refused) > 1:
            self._ticks.note_failure(problem)
            return
        self._ticks.note_completed(problem)
        self._watch.beat()
