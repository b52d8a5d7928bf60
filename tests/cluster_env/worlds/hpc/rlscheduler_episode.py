"""RLScheduler's environment, decision by decision, for policies that were trained in it.

It is written in plain Python, as a reference; `cluster_env.worlds.hpc.published` plays its
heuristics in compiled code. The chosen job blocks until it fits, and one event is one arrival or
one completion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

VISIBLE = 128
"""Jobs that its policy sees."""

_MOST_WAIT = 43_200.0  # seconds
_NEARLY_0, _NEARLY_1 = 1e-5, 1 - 1e-5
_NONE = (0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)


@dataclass(frozen=True)
class PeerJobs:
    """Jobs as its reader has them, in order of submission.

    Attributes:
        submit: seconds of the log's clock, int64 ``(num_jobs,)``.
        run: seconds, at least 1.
        requested: seconds.
        processors: of each job.
        further: memory, user, group and application, ``(num_jobs, 4)``; -1 if not known.
        longest: largest requested time that it knows of, in seconds.
        machine: processors of the machine.
        most: largest memory, user, group and application that it knows of, ``(4,)``.
    """

    submit: NDArray[np.int64]
    run: NDArray[np.int64]
    requested: NDArray[np.int64]
    processors: NDArray[np.int64]
    further: NDArray[np.int64]
    longest: int
    machine: int
    most: NDArray[np.int64]


class RLSchedulerEpisode:
    """One episode: look at `visible` and `observation`, then `step`, until `done`.

    Args:
        jobs: what arrives, at least one job.
        backfilling: whether jobs may start while the chosen one waits.
    """

    def __init__(self, jobs: PeerJobs, backfilling: bool) -> None:
        self._jobs, self._backfilling = jobs, backfilling
        self.start = np.full(jobs.submit.size, -1, np.int64)
        self.time, self.free = int(jobs.submit[0]), jobs.machine
        self._queue, self._running, self._coming = [0], list[int](), 1
        self.visible = self._look()

    @property
    def done(self) -> bool:
        """Whether every job has started."""
        return not self._queue

    @property
    def queue_length(self) -> int:
        """Jobs that wait."""
        return len(self._queue)

    def observation(self) -> NDArray[np.float64]:
        """Eight features of each visible job, float64 ``(128, 8)``.

        Waiting time over half a day, requested time, processors, memory, user, group and
        application, each over the largest, and whether it fits.
        """
        jobs, out = self._jobs, np.tile(_NONE, (VISIBLE, 1))
        seen = np.array(self.visible, np.intp)
        rows = out[: seen.size]
        rows[:, 0] = (self.time - jobs.submit[seen]) / _MOST_WAIT
        rows[:, 1] = jobs.requested[seen] / jobs.longest
        rows[:, 2] = jobs.processors[seen] / jobs.machine
        further = jobs.further[seen]
        rows[:, 3:7] = np.where(further == -1, 1.0, further / np.maximum(jobs.most, 1))
        rows[:, :7] = np.minimum(rows[:, :7], _NEARLY_1)
        rows[:, 3:7][further == -1] = 1.0
        rows[:, 7] = np.where(jobs.processors[seen] <= self.free, _NEARLY_1, _NEARLY_0)
        return out

    def step(self, action: int) -> None:
        """Starts a visible job as soon as it fits; then time goes on if no other waits.

        Args:
            action: index into `visible`.
        """
        job = self.visible[action]
        self._queue.remove(job)
        reservation = self._reservation(job) if self._backfilling else self.time
        while self._jobs.processors[job] > self.free:
            self._backfill(reservation)
            self._next_event()
        self._begin(job)
        while not self._queue and self._coming < self.start.size:
            self._next_event()
        self.visible = self._look()

    def _look(self) -> list[int]:
        jobs = self._jobs
        self._queue.sort(key=lambda job: jobs.submit[job])
        if len(self._queue) <= VISIBLE:
            return list(self._queue)
        self._queue.sort(key=lambda job: (jobs.requested[job], jobs.submit[job]))
        shortest = list(self._queue)
        self._queue.sort(key=lambda job: (jobs.processors[job], jobs.submit[job]))
        pairs = zip(shortest, self._queue, strict=True)
        return list(dict.fromkeys(job for pair in pairs for job in pair))[:VISIBLE]

    def _reservation(self, job: int) -> int:
        """When the job fits, if those that run take as long as they asked for."""
        jobs, free = self._jobs, self.free
        if jobs.processors[job] <= free:
            return self.time
        self._running.sort(key=lambda one: self.start[one] + jobs.requested[one])
        for other in self._running:
            free += int(jobs.processors[other])
            if jobs.processors[job] <= free:
                break
        return int(self.start[other] + jobs.requested[other])

    def _backfill(self, reservation: int) -> None:
        if not self._backfilling:
            return
        jobs = self._jobs
        self._queue.sort(key=lambda job: jobs.submit[job])
        for job in list(self._queue):
            in_time = self.time + jobs.requested[job] < reservation
            if jobs.processors[job] <= self.free and in_time:
                self._queue.remove(job)
                self._begin(job)

    def _begin(self, job: int) -> None:
        self.start[job] = self.time
        self.free -= int(self._jobs.processors[job])
        self._running.append(job)

    def _next_event(self) -> None:
        """The next arrival, or one completion if that is earlier."""
        jobs = self._jobs
        self._running.sort(key=lambda one: self.start[one] + jobs.run[one])
        ends = [int(self.start[one] + jobs.run[one]) for one in self._running[:1]]
        arrives = self._coming < self.start.size
        if arrives and not (ends and ends[0] < jobs.submit[self._coming]):
            self.time = int(jobs.submit[self._coming])
            self._queue.append(self._coming)
            self._coming += 1
        else:
            self.time = ends[0]
            self.free += int(jobs.processors[self._running.pop(0)])
