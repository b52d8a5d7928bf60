"""Simulators of small worlds in numpy, where an episode is a record and each job runs once."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import BatchSimulator
from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.objectives.objective import Objective


class RecordSimulator(BatchSimulator):
    """A simulator that leaves two things to say: how episodes begin, and what a decision does.

    A world's own one returns the first states in `begin`, and takes decisions in `step`, which
    writes `states`, `time`, `start`, `active` and `truncated`. Time begins at 0, and no job has
    started. It is as fast as its numpy; the worlds that come with metasched compile theirs.

    Args:
        world: whose episodes are simulated. Its attribute ``capacity``, if it has one, is that of
            each resource; otherwise there is one unit of one resource.
    """

    start: NDArray[np.int32]  # (num_rows, most_jobs): start of each job of the jobset, or -1

    def require(self, objective: Objective) -> None:
        """Refuses an objective that is more than a rate of each job; override it to take more.

        Raises:
            InputError: if it has other costs, or gains.
        """
        others = (objective.busy_cost, objective.utilization_gain, objective.late_costs)
        if any(others) or objective.gains_at_finish:
            raise InputError(
                f"the objective '{objective.name}' is more than a cost of each job for each unit "
                f"of time, which is all that {type(self).__name__} rewards"
            )

    @abstractmethod
    def begin(self) -> NDArray[Any]:
        """The states of all rows before the first decision, ``(num_rows, state_size)``."""

    def allocate(self) -> None:
        """Keeps each episode as one record, of which the arrays that all see are views."""
        states = self.begin()
        first = np.zeros(
            self.num_rows,
            [
                ("states", states.dtype, states.shape[1:]),
                ("time", np.int32),
                ("start", np.int32, (self.batch.most_jobs,)),
                ("active", np.bool_),
                ("truncated", np.bool_),
            ],
        )
        first["states"], first["start"], first["active"] = states, -1, True
        self._first, self._rows = first, first.copy()

    def show(self) -> None:
        """Sets the arrays that all see."""
        for name in self._rows.dtype.names or ():
            setattr(self, name, self._rows[name])

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all rows, or the given ones, back to the beginning; see `Simulator.reset`."""
        which = self.episode if rows is None else rows
        self._rows[which] = self._first[which]

    def take_over(
        self, other: "RecordSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of rows under way; see `Simulator.take_over`."""
        jobs = min(self.batch.most_jobs, other.batch.most_jobs)
        for name in self._first.dtype.names or ():
            # Jobsets of the two simulators may be padded to different numbers of jobs.
            columns = (slice(jobs),) if name == "start" else ()
            self._rows[name][(target, *columns)] = other._rows[name][(source, *columns)]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        batch = self.batch
        is_job = np.arange(batch.most_jobs) < batch.num_jobs[:, None]
        start = self.start[is_job]
        arrived = batch.column("arrival", np.int64)[batch.job_of_place]
        episode = np.repeat(self.episode, batch.num_jobs)
        return batch.schedule(
            arrived=np.bincount(
                episode[arrived <= self.time[episode]], minlength=batch.num_episodes
            ),
            start=start,
            finish=batch.finish_of(start, self.time),
            end=self.time,
            capacity=getattr(self.world, "capacity", (1,)),
        )
