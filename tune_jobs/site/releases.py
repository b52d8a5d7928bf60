"""What has been released: jobs that the site is to start, or that it did not start in time."""

from collections.abc import Iterable

from rllib_configs.snapshot import BLOCKED, HELD, RUNNING, WAITING, Snapshot
from tune_jobs.site.deciding import Past

LONGEST_REST_S = 3600
REST_S = 30.0
"""Of a job whose release was refused, where none is held again."""


class Releases:
    """Remembers releases until the jobs run or are gone, by seconds that nobody sets back.

    A job that the site has not started after a while, or that it may not start (a limit, a node
    that is asked for by name), is held again and rests: twice as long as it was waited for, then
    twice as long as before. A job that stays held although it was released rests once as long.

    Args:
        rehold_s: seconds after which a job is held again; 0: never, and then no release waits for
            the starts of earlier ones.
    """

    def __init__(self, rehold_s: float) -> None:
        self._rehold_s = rehold_s
        self._tried: set[str] = set()
        self._released: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._rests: dict[str, float] = {}
        self.refused: set[str] = set()
        """Jobs that stay held although they were released, since a release was last heeded."""

    def __contains__(self, job: object) -> bool:
        return job in self._released

    def past(self, snapshot: Snapshot, now: float) -> Past:
        """What is under way and what rests, as the site is now."""
        states = {job.job: job.state for job in snapshot.jobs}
        self._look_after(states, now)
        for known in (self._released, self._failures, self._rests):
            for job in known.keys() - {job for job in states if states[job] != RUNNING}:
                del known[job]
        awaited = [job for job in self._released if states[job] in (WAITING, BLOCKED)]
        rests = {
            job: snapshot.time + round(until - now)
            for job, until in self._rests.items()
            if until > now and states[job] == HELD
        }
        return Past(tuple(awaited) if self._rehold_s else (), rests)

    def _look_after(self, states: dict[str, str], now: float) -> None:
        """Finds out which of the last releases were refused."""
        there = self._tried & states.keys()
        stay = {job for job in there if states[job] == HELD}
        if there - stay:
            self.refused.clear()
        else:
            self.refused = (self.refused | stay) & states.keys()
        self._rests |= dict.fromkeys(stay, now + (self._rehold_s or REST_S))
        self._tried.clear()

    def late(self, snapshot: Snapshot, past: Past, now: float) -> list[str]:
        """Those under way that are to be held again."""
        blocked = {job.job for job in snapshot.in_state(BLOCKED)}
        return [
            job
            for job in past.awaited
            if job in blocked or now - self._released[job] >= self._rehold_s
        ]

    def note(self, jobs: Iterable[str], now: float) -> None:
        """Jobs are being released."""
        self._tried |= set(jobs)
        self._released |= dict.fromkeys(jobs, now)

    def note_held(self, jobs: Iterable[str], now: float) -> None:
        """Jobs are being held again."""
        for job in jobs:
            self._failures[job] = self._failures.get(job, 0) + 1
            rest = min(self._rehold_s * 2 ** min(self._failures[job], 20), LONGEST_REST_S)
            self._rests[job] = now + rest
