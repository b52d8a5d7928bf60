"""Ticks: a site is read again and again, and it is noted whether anything comes of it."""

import time
from collections.abc import Callable
from dataclasses import replace

from cluster_env.workloads.hashing import hashed_name
from rllib_configs.snapshot import Snapshot
from tune_jobs.site.backend import Backend
from tune_jobs.site.commands import SiteAway
from tune_jobs.site.journal import Write
from tune_jobs.site.trouble import Trouble

LONGEST_PAUSE_S = 30.0
AWAY, BACK = "away", "back"
"""Kinds of lines in the journal: what fails, and that nothing fails any longer."""


class Ticks:
    """Reads a site again and again, waits where it does not answer, and says so once.

    Args:
        backend: the site.
        write: takes a line for the first failure, each other one, and the recovery.
        tick_s: seconds from tick to tick.
        most: ticks; 0 for no end.
        stopping: whether somebody wants this to end; asked again and again, also while it waits.
        announce: takes a sentence about the same.
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
        announce: Callable[[str], None] = lambda sentence: None,
        hide_users: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend, self._write, self._tick_s, self._most = backend, write, tick_s, most
        self._stopping, self._sleep = stopping, sleep
        self._clock, self._hide_users = clock, hide_users
        self._next, self._failures = self._clock(), 0
        self._completed_at = self._next
        self._trouble = Trouble("Slurm does not do what is asked", announce)
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
                if not self._stopping():
                    self.note_away(error)
                continue
            self.num += 1
            if self._hide_users:
                snapshot = without_users(snapshot)
            return snapshot, (time.perf_counter() - begin) * 1000
        return None

    def note_away(self, error: SiteAway) -> None:
        """Notes that the site does not answer; the next tick waits, longer each time."""
        self._failures += 1
        self.note_failure(str(error))
        pause = min(2.0 ** (self._failures - 1), LONGEST_PAUSE_S)
        self._next = self._clock() + pause

    def note_failure(self, problem: str) -> None:
        """Notes what has failed in a tick."""
        if self._trouble.note(problem):
            self._write({"kind": AWAY, "time": int(time.time()), "error": problem})

    def note_completed(self, problem: str = "") -> None:
        """Notes that a tick has got through to its end; the time without progress begins anew.

        Args:
            problem: what has failed all the same.
        """
        self._failures, self._completed_at = 0, self._clock()
        if problem:
            self.note_failure(problem)
        elif self._trouble.note(""):
            self._write({"kind": BACK, "time": int(time.time())})

    @property
    def problem(self) -> str:
        """What fails now; empty if nothing does."""
        return self._trouble.now

    @property
    def without_progress_s(self) -> float:
        """Seconds since a tick was completed, or since the beginning."""
        return self._clock() - self._completed_at

    def _wait(self, seconds: float) -> None:
        until = self._clock() + seconds
        while not self._stopping() and (left := until - self._clock()) > 0:
            self._sleep(min(left, 0.2))


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
