"""Simulators of small worlds in numpy, where an episode is a record and each job runs once."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import BatchSimulator
from cluster_env.core.jobs import JobSet
from cluster_env.core.objective import Objective
from cluster_env.core.schedule import Schedule


class RecordSimulator(BatchSimulator):
    """A simulator that leaves two things to say: how episodes begin, and what a decision does.

    A world's own one returns the first states in `begin`, and takes one decision in `decide`. All
    else follows: the reward of a decision is what the schedule costs less than before, so that
    every objective can be rewarded, and its returns are minus its costs. That takes some
    milliseconds for a hundred episodes; the worlds that come with metasched compile their own.

    The world's attribute ``capacity``, if it has one, is that of each resource; otherwise there is
    one unit of one resource.
    """

    start: NDArray[np.int32]  # (num_rows, most_jobs): start of each job of the jobset, or -1
    cost: NDArray[np.float64]  # (num_rows,): of the schedule so far

    @abstractmethod
    def begin(self) -> NDArray[Any]:
        """The states of all rows before the first decision, ``(num_rows, state_size)``."""

    @abstractmethod
    def decide(self, row: int, action: int) -> None:
        """Takes a decision: writes the row of all that changes.

        That is of `states`, `time`, `start`, `active` and `truncated`.
        """

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets; see `Simulator.load`."""
        self._objective = objective
        super().load(jobsets, objective, episodes_per_jobset)

    def allocate(self) -> None:
        """Keeps each episode as one record, of which the arrays that all see are views."""
        states = self.begin()
        form = [
            ("states", states.dtype, states.shape[1:]),
            ("time", np.int32),
            ("start", np.int32, (self.batch.most_jobs,)),
            ("active", np.bool_),
            ("truncated", np.bool_),
            ("cost", np.float64),
        ]
        self._records = np.zeros(self.num_rows, form)
        self.show()
        self.states[:], self.start[:], self.active[:] = states, -1, True
        self.cost[:] = self._objective.cost_of_episodes(self.schedule())
        self._first = self._records.copy()

    def show(self) -> None:
        """Sets the arrays that all see."""
        for name in self._records.dtype.names or ():
            setattr(self, name, self._records[name])

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all rows, or the given ones, back to the beginning; see `Simulator.reset`."""
        which = self.episode if rows is None else rows
        self._records[which] = self._first[which]

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[Any], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some rows; see `Simulator.step`."""
        for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
            if self.active[row]:
                self.decide(row, action)
        cost = self._objective.cost_of_episodes(self.schedule())
        rewards[: rows.size] = (self.cost - cost)[rows]
        self.cost[:] = cost
        return int(self.active[rows].sum())

    def take_over(
        self, other: "RecordSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of rows under way; see `Simulator.take_over`."""
        most_jobs = min(self.batch.most_jobs, other.batch.most_jobs)
        for name in self._records.dtype.names or ():
            # Starts may be padded to different numbers of jobs.
            columns = (slice(most_jobs),) if name == "start" else ()
            self._records[name][(target, *columns)] = other._records[name][(source, *columns)]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        batch = self.batch
        start = self.start[np.arange(batch.most_jobs) < batch.num_jobs[:, None]]
        episode = np.repeat(self.episode, batch.num_jobs)
        arrival = batch.column("arrival", np.int64)[batch.job_of_place]
        has_arrived = episode[arrival <= self.time[episode]]
        return batch.schedule(
            arrived=np.bincount(has_arrived, minlength=batch.num_episodes),
            start=start,
            finish=batch.finish_of(start, self.time),
            end=self.time,
            capacity=getattr(self.world, "capacity", (1,)),
        )
