"""A policy beside a site: what it would start, and whether the site did."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from cluster_env.workloads.hashing import hashed_name
from rllib_configs.snapshot import RUNNING, WAITING, Adviser, Snapshot
from tune_jobs.site.backend import Backend
from tune_jobs.site.controller import SiteAway
from tune_jobs.site.deciding import NO_PAST, Decision, Limits, decide
from tune_jobs.site.journal import Write, tick_entry

LONGEST_PAUSE_S = 30.0

Show = Callable[[Snapshot, Decision, Sequence[Any] | None], None]


class Ticks:
    """Looks at a site again and again, and waits where it does not answer.

    Args:
        backend: the site.
        write: takes a line for each time that it does not answer.
        tick_s: seconds from look to look.
        most: looks; 0 for no end.
        stopping: whether somebody wants this to end.
        meanwhile: called again and again, also while this waits.
        hide_users: whether users become hashes.
        sleep: waits so many seconds.
        clock: seconds that go by.
    """

    def __init__(
        self,
        backend: Backend,
        write: Write,
        *,
        tick_s: float,
        most: int = 0,
        stopping: Callable[[], bool] = lambda: False,
        meanwhile: Callable[[], object] = lambda: None,
        hide_users: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend, self._write, self._tick_s, self._most = backend, write, tick_s, most
        self._stopping, self._meanwhile, self._sleep = stopping, meanwhile, sleep
        self._clock = clock
        self._hide_users = hide_users
        self._next, self._failures = self._clock(), 0
        self.num = 0

    def look(self) -> tuple[Snapshot, float] | None:
        """The next state of the site and the milliseconds that it took; None when it is over."""
        while not self._stopping() and not (self._most and self.num >= self._most):
            self._wait(max(self._next - self._clock(), 0.0))
            if self._stopping():
                return None
            begin = time.perf_counter()
            self._next = self._clock() + self._tick_s
            try:
                snapshot = self._backend.read().in_order()
            except SiteAway as error:
                self.note_away(error)
                continue
            self._failures = 0
            self.num += 1
            if self._hide_users:
                snapshot = without_users(snapshot)
            return snapshot, (time.perf_counter() - begin) * 1000
        return None

    def note_away(self, error: SiteAway) -> None:
        """Records that the site does not answer; the next look waits, longer each time."""
        self._failures += 1
        self._write({"kind": "away", "time": int(time.time()), "error": str(error)})
        pause = min(2.0 ** (self._failures - 1), LONGEST_PAUSE_S)
        self._next = self._clock() + pause

    def _wait(self, seconds: float) -> None:
        until = self._clock() + seconds
        self._meanwhile()
        while not self._stopping() and (left := until - self._clock()) > 0:
            self._sleep(min(left, 0.2))
            self._meanwhile()


def without_users(snapshot: Snapshot) -> Snapshot:
    """The same with hashes in place of the names of users, also where limits name them."""

    def hashed(name: str) -> str:
        return hashed_name("user", name)

    jobs = tuple(replace(one, user=hashed(one.user)) for one in snapshot.jobs)
    if snapshot.restrictions is None:
        return replace(snapshot, jobs=jobs)
    limits = [
        {**limit, "name": hashed(limit["name"])} if limit.get("kind") == "user" else limit
        for limit in snapshot.restrictions.get("limits", ())
    ]
    calendar = [
        {**entry, "users": [hashed(name) for name in entry.get("users", ())]}
        for entry in snapshot.restrictions.get("calendar", ())
    ]
    restrictions = {**snapshot.restrictions, "limits": limits, "calendar": calendar}
    return replace(snapshot, jobs=jobs, restrictions=restrictions)


class Agreement:
    """Compares what was advised with what the site did until the next look."""

    def __init__(self) -> None:
        self._advised: frozenset[str] = frozenset()
        self._waiting: frozenset[str] = frozenset()
        self._looked = False

    def since(self, snapshot: Snapshot) -> dict[str, Any] | None:
        """What the site started since the last look; None at the first.

        ``agreement`` is the number of jobs that were both advised and started over that of those
        that were either; null where neither was. ``gone`` are jobs that ended or were cancelled in
        between, of which nobody knows.
        """
        if not self._looked:
            return None
        states = {job.job: job.state for job in snapshot.jobs}
        started = {name for name in self._waiting if states.get(name) == RUNNING}
        gone = {name for name in self._waiting if name not in states}
        advised = self._advised - gone
        either = advised | started
        return {
            "started": sorted(started),
            "gone": sorted(gone),
            "agreement": len(advised & started) / len(either) if either else None,
        }

    def note(self, snapshot: Snapshot, decision: Decision) -> None:
        """Remembers what was advised now."""
        self._advised = frozenset(one.job for one in decision.starts)
        self._waiting = frozenset(job.job for job in snapshot.in_state(WAITING))
        self._looked = True


def shadow(
    ticks: Ticks,
    adviser: Adviser,
    policy: str,
    limits: Limits,
    write: Write,
    foresee: Callable[[Snapshot], Sequence[Any]] | None = None,
    show: Show = lambda snapshot, decision, start_times: None,
) -> dict[str, Any]:
    """Advises at each look and changes nothing.

    Args:
        ticks: the looks.
        adviser: the policy.
        policy: its name.
        limits: of the guard in front of it.
        write: takes a line each tick.
        foresee: says when those that wait will start (`rllib_configs.snapshot.StartTime`), if
            anybody asks.
        show: takes what people see of a tick.

    Returns:
        A summary: ticks, jobs advised and started, and the mean agreement where there was any.
    """
    agreement, agreed = Agreement(), []
    advised = started = 0
    while (found := ticks.look()) is not None:
        snapshot, read_ms = found
        begin = time.perf_counter()
        decision = decide(snapshot, adviser, limits, WAITING)
        entry = tick_entry(ticks.num, policy, limits, WAITING, snapshot, NO_PAST, decision)
        entry["ms"] = {
            "read": round(read_ms, 3),
            "decide": round((time.perf_counter() - begin) * 1000, 3),
        }
        entry["site"] = agreement.since(snapshot)
        agreement.note(snapshot, decision)
        start_times = None if foresee is None else foresee(snapshot)
        if start_times is not None:
            entry["start_times"] = [asdict(one) for one in start_times]
        write(entry)
        show(snapshot, decision, start_times)
        advised += len(decision.starts)
        if entry["site"]:
            started += len(entry["site"]["started"])
            if entry["site"]["agreement"] is not None:
                agreed.append(entry["site"]["agreement"])
    mean = sum(agreed) / len(agreed) if agreed else None
    return {"ticks": ticks.num, "advised": advised, "started": started, "agreement": mean}
