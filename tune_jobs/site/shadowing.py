"""A policy beside a site: what it would start, and whether the site did."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rllib_configs.snapshot import RUNNING, WAITING, Adviser, Snapshot
from tune_jobs.site.deciding import NO_PAST, Decision, Limits, decide
from tune_jobs.site.journal import Write, tick_entry
from tune_jobs.site.ticks import Ticks

Show = Callable[[Snapshot, Decision, Sequence[Any] | None], None]


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
        ticks.note_completed()
        show(snapshot, decision, start_times)
        advised += len(decision.starts)
        if entry["site"]:
            started += len(entry["site"]["started"])
            if entry["site"]["agreement"] is not None:
                agreed.append(entry["site"]["agreement"])
    mean = sum(agreed) / len(agreed) if agreed else None
    return {"ticks": ticks.num, "advised": advised, "started": started, "agreement": mean}
