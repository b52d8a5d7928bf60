"""DeepRM's simulator: many episodes side by side, in compiled steps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, BatchSimulator
from cluster_env.core.jobs import JobSet
from cluster_env.core.objective import Objective, require_no_finish_gain
from cluster_env.core.schedule import Schedule
from cluster_env.worlds.deeprm import kernels
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout

_NEVER = np.iinfo(np.int32).max


class DeepRMSimulator(BatchSimulator):
    """Many episodes of DeepRM's model side by side; what a step does stands in `DeepRM`.

    A row is an episode. Its arrays are padded to the largest jobset: no kernel of this house walks
    faster than over a row of a table.

    Its `layout` is that of the states, its `state` all arrays that change, for tests and viewers.
    """

    state: kernels.EpisodeStates

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.cluster: Cluster = world.cluster
        self.layout: StateLayout = world.layout

    def check(self, jobset: JobSet) -> None:
        """Refuses jobs that cannot run; a window may be longer than episodes, which cut it."""
        self.cluster.check(jobset)

    def require(self, objective: Objective) -> None:
        """Refuses an objective with a `finish_gain` or a `utility_gain`."""
        require_no_finish_gain(objective, "DeepRM's simulator")

    def allocate(self) -> None:
        """Lays out the jobs of the batch, and the arrays of its episodes."""
        batch, rules = self.batch, self.world.switches
        # What is scheduled: a row for each jobset, as wide as the largest needs it.
        num_jobs, num_rows = np.diff(batch.first), batch.num_episodes
        self._is_job = np.arange(max(1, batch.most_jobs)) < num_jobs[:, None]
        late_time, late_job, late_cost = _late_costs(batch)
        jobs = kernels.Jobs(
            arrival=_padded(batch.column("arrival", np.int32), self._is_job),
            duration=_padded(batch.column("duration", np.int32), self._is_job),
            demand=_padded(batch.column("demand", np.int32), self._is_job),
            job_class=_padded(batch.column("job_class", np.uint8), self._is_job),
            cost=_padded(batch.costs.rate, self._is_job),
            late_time=late_time,
            late_job=late_job,
            late_cost=late_cost,
            num_jobs=num_jobs.astype(np.int32),
            window=batch.window.astype(np.int32),
            busy_cost=batch.costs.busy_cost,
            utilization_gain=batch.costs.utilization_gain,
        )
        # What changes: a row for each episode.
        per_job = (num_rows, self._is_job.shape[1])
        self.state = kernels.EpisodeStates(
            jobset=batch.jobset,
            packed=np.zeros((num_rows, self.layout.size), np.uint8),
            clock=np.zeros(num_rows, np.int32),
            next_job=np.zeros(num_rows, np.int32),
            slots=np.full((num_rows, self.cluster.num_slots), -1, np.int32),
            num_in_slots=np.zeros(num_rows, np.int32),
            backlog=np.zeros(per_job, np.int32),
            backlog_head=np.zeros(num_rows, np.int32),
            backlog_tail=np.zeros(num_rows, np.int32),
            running=np.zeros(per_job, np.int32),
            num_running=np.zeros(num_rows, np.int32),
            num_gone=np.zeros(num_rows, np.int32),
            gone=np.zeros(per_job, np.bool_),
            start=np.full(per_job, -1, np.int32),
            cost_rate=np.zeros(num_rows, np.float64),
            next_late=np.zeros(num_rows, np.int32),
            late_rate=np.zeros(per_job, np.float64),
            active=np.zeros(num_rows, np.bool_),
            truncated=np.zeros(num_rows, np.bool_),
        )
        switches = kernels.Switches(
            max_time=self.world.max_time,
            try_last_start=rules.try_last_start,
            linger_finished=rules.linger_finished,
            drop_when_backlog_full=rules.drop_when_backlog_full,
            charge_after_step=rules.charge_after_step,
            stop_after_window=rules.stop == "no_new_job",
        )
        self._episodes = kernels.Episodes(self.layout.shape, switches, jobs, self.state)
        # The views that every simulator shows.
        self.states, self.time = self.state.packed, self.state.clock
        self.active, self.truncated = self.state.active, self.state.truncated

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to time 0 of their jobsets."""
        kernels.reset(self._episodes, self.episode if rows is None else rows)

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes, without allocating; see `Simulator.step`."""
        return int(kernels.step(self._episodes, rows, actions, rewards))

    def take_over(
        self, other: "DeepRMSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way; see `Simulator.take_over`."""
        names = [name for name in self.state._fields if name != "jobset"]
        parts = ((getattr(self.state, name), getattr(other.state, name)) for name in names)
        for own, others in parts:
            # Columns of jobs may be padded to jobsets of different sizes.
            columns = slice(min(own.shape[-1], others.shape[-1])) if own.ndim > 1 else ...
            own[target, columns] = others[source, columns]

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        # The batch has the jobs of all episodes one after the other, without the padding.
        start = self.state.start[self._is_job[self.batch.jobset]]
        return self.batch.schedule(
            arrived=self.state.next_job,
            start=start,
            finish=self.batch.finish_of(start, self.time),
            end=self.time,
            capacity=self.cluster.capacity,
        )


def _padded(column: NDArray[Any], present: NDArray[np.bool_], padding: float = 0) -> NDArray[Any]:
    """A column of all jobs, jobset after jobset, as a table ``(num_jobsets, most_jobs, ...)``."""
    table = np.full((*present.shape, *column.shape[1:]), padding, column.dtype)
    table[present] = column
    return table


def _late_costs(batch: Batch) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Times, jobs and costs of the late costs of each jobset, in the order of time; see `Jobs`."""
    # Those that cost anything, by their index among all jobs.
    term, job = np.nonzero(batch.costs.late_rate)
    jobset = np.searchsorted(batch.first, job, side="right") - 1
    time = batch.column("arrival", np.int64)[job] + batch.costs.late_after[term, job]
    # By jobset and time; of those at one time, in the order of terms and jobs.
    order = np.lexsort((time, jobset))
    counts = np.bincount(jobset, minlength=len(batch.jobsets))
    listed = np.arange(counts.max() + 1) < counts[:, None]  # the last of each list never begins
    return (
        _padded(np.minimum(time, _NEVER)[order].astype(np.int32), listed, _NEVER),
        _padded((job - batch.first[jobset])[order].astype(np.int32), listed),
        _padded(batch.costs.late_rate[term, job][order], listed),
    )
