"""DeepRM's cluster in plain Python and numpy, one episode at a time: what we compare with.

It is written as one would write it without a compiler: jobs are objects, capacity and image are
numpy arrays, one call is one decision. Tests hold it to the same rewards, ends and images as the
compiled simulator.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.image import ImageLayout


@dataclass
class PlainJob:
    """A job in the system."""

    duration: int
    demand: NDArray[np.int32]
    finish: int = -1


class PlainCluster:
    """The paper's rules with the objective slowdown; see `DeepRMSimulator`.

    Args:
        cluster: resources, horizon and slots.
        jobset: what is scheduled.
    """

    def __init__(self, cluster: Cluster, jobset: JobSet) -> None:
        self._cluster = cluster
        self._capacity = np.asarray(cluster.capacity, np.int32)
        self._layout = ImageLayout(cluster)
        self.load(jobset)

    def load(self, jobset: JobSet) -> None:
        """Takes other jobs and begins at time 0."""
        self._jobset = jobset
        self._used = np.zeros((self._cluster.horizon, self._capacity.size), np.int32)
        self._slots: list[PlainJob | None] = [None] * self._cluster.num_slots
        self._backlog: deque[PlainJob] = deque()
        self._running: list[PlainJob] = []
        self._next = 0
        self._clock = 0
        self._arrive()

    def step(self, action: int) -> tuple[float, bool]:
        """Takes one decision; returns its reward and whether the episode has ended."""
        if action < self._cluster.num_slots:
            job = self._slots[action]
            if job is not None and self._place(job):
                self._slots[action] = self._backlog.popleft() if self._backlog else None
                return 0.0, False
        return self._pass_time()

    def _place(self, job: PlainJob) -> bool:
        for start in range(self._cluster.horizon - job.duration + 1):
            span = self._used[start : start + job.duration]
            if np.all(span + job.demand <= self._capacity):
                span += job.demand
                job.finish = self._clock + start + job.duration
                self._running.append(job)
                return True
        return False

    def _pass_time(self) -> tuple[float, bool]:
        waiting = [job for job in self._slots if job is not None]
        in_system = [*waiting, *self._backlog, *self._running]
        reward = -sum(1.0 / job.duration for job in in_system)
        self._clock += 1
        self._used[:-1] = self._used[1:]
        self._used[-1] = 0
        self._running = [job for job in self._running if job.finish > self._clock]
        if self._clock >= self._jobset.window and not waiting and not self._running:
            return reward, True
        self._arrive()
        return reward, False

    def _arrive(self) -> None:
        jobs = self._jobset
        while self._next < jobs.num_jobs and jobs.arrival[self._next] == self._clock:
            job = PlainJob(int(jobs.duration[self._next]), jobs.demand[self._next])
            self._next += 1
            if None in self._slots:
                self._slots[self._slots.index(None)] = job
            else:
                self._backlog.append(job)

    def image(self) -> NDArray[np.uint8]:
        """The paper's image of the state, uint8 ``(horizon, width)``."""
        layout = self._layout
        image = np.zeros(layout.shape, np.uint8)
        for resource in range(self._capacity.size):
            block = image[:, layout.occupied_columns(resource)]
            for row in range(self._cluster.horizon):
                block[row, : self._used[row, resource]] = 1
            for slot, job in enumerate(self._slots):
                if job is not None:
                    block = image[:, layout.slot_columns(resource, slot)]
                    block[: job.duration, : job.demand[resource]] = 1
        waiting = min(len(self._backlog), self._cluster.backlog_view)
        full, rest = divmod(waiting, layout.backlog_width)
        block = image[:, layout.backlog_columns]
        block[:full] = 1
        block[full : full + 1, :rest] = 1
        return image
