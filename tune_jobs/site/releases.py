"""What has been released: jobs that the site is to start, or that it did not start in time."""

from collections.abc import Iterable

from rllib_configs.snapshot import BLOCKED, RUNNING, WAITING, Snapshot
from tune_jobs.site.deciding import Past

LONGEST_REST_S = 3600


class Releases:
    """Remembers releases until the jobs run or are gone.

    A job that the site has not started after a while, or that it may not start (a limit, a node
    that is asked for by name), is held again and rests: twice as long as it was waited for, then
    twice as long as before.

    Args:
        rehold_s: seconds after which a job is held again; 0: never, and then no release waits for
            the starts of earlier ones.
    """

    def __init__(self, rehold_s: float) -> None:
        self._rehold_s = rehold_s
        self._released: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._rests: dict[str, int] = {}

    def __contains__(self, job: object) -> bool:
        return job in self._released

    def past(self, snapshot: Snapshot) -> Past:
        """What is under way and what rests, as the site is now."""
        states = {job.job: job.state for job in snapshot.jobs if job.state != RUNNING}
        for known in (self._released, self._failures, self._rests):
            for job in known.keys() - states.keys():
                del known[job]
        if not self._rehold_s:
            return Past()
        awaited = [job for job in self._released if states[job] in (WAITING, BLOCKED)]
        rests = {job: until for job, until in self._rests.items() if until > snapshot.time}
        return Past(tuple(awaited), rests)

    def late(self, snapshot: Snapshot, past: Past) -> list[str]:
        """Those under way that are to be held again."""
        blocked = {job.job for job in snapshot.in_state(BLOCKED)}
        return [
            job
            for job in past.awaited
            if job in blocked or snapshot.time - self._released[job] >= self._rehold_s
        ]

    def note(self, jobs: Iterable[str], time: int) -> None:
        """Jobs are being released."""
        self._released |= dict.fromkeys(jobs, time)

    def note_held(self, jobs: Iterable[str], time: int) -> None:
        """Jobs are being held again."""
        for job in jobs:
            self._failures[job] = self._failures.get(job, 0) + 1
            rest = min(self._rehold_s * 2 ** min(self._failures[job], 20), LONGEST_REST_S)
            self._rests[job] = time + int(rest)
