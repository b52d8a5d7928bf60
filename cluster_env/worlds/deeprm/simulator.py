"""DeepRM's cluster: a horizon of free capacity, decisions while time stands still."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule, gather_attributes
from cluster_env.objectives.objective import Objective, require_no_finish_gain
from cluster_env.worlds.deeprm import kernels
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.late import late_state
from cluster_env.worlds.deeprm.rules import PAPER_RULES, Rules
from cluster_env.worlds.deeprm.state import StateLayout


class DeepRMSimulator:
    """Many episodes of DeepRM's model (section 3) side by side.

    An action in ``0..num_slots-1`` books the job of that slot at the first time step of the
    horizon from which its demands fit until it is done; time stands still and the reward is 0.
    Any other action, or one that cannot be carried out, lets one time step pass. An episode ends
    as the rules say, or is truncated when its clock passes `max_time`.

    Args:
        cluster: resources, horizon and slots.
        rules: the paper's rules or the released code's.
        max_time: clock after which an episode is truncated.
    """

    def __init__(self, cluster: Cluster, rules: Rules = PAPER_RULES, max_time: int = 1000) -> None:
        if max_time < 1:
            raise InputError(f"max_time must be 1 or larger, but {max_time} was given")
        self.cluster = cluster
        self.rules = rules
        self.max_time = max_time
        self.layout = StateLayout(cluster)
        self._shape = kernels.Shape(
            capacity=np.asarray(cluster.capacity, np.int32),
            horizon=cluster.horizon,
            num_slots=cluster.num_slots,
            backlog_limit=cluster.backlog_view,
            slots_at=int(self.layout.slots.start),
            backlog_at=self.layout.backlog,
            since_at=self.layout.since,
            waited_at=int(self.layout.waited.start),
            window_at=self.layout.window,
            max_time=max_time,
            try_last_start=rules.try_last_start,
            linger_finished=rules.linger_finished,
            drop_when_backlog_full=rules.drop_when_backlog_full,
            charge_after_step=rules.charge_after_step,
            stop_after_window=rules.stop == "no_new_job",
        )
        self._jobs: kernels.Jobs
        self._state: kernels.EpisodeStates
        self._late: kernels.LateState | None
        self._job_class: NDArray[np.uint8]
        self._rows = np.empty(0, np.int32)

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets.

        Args:
            jobsets: what is scheduled; episode ``e`` runs ``jobsets[e // episodes_per_jobset]``.
            objective: what the rewards are.
            episodes_per_jobset: episodes that run each jobset.

        Raises:
            InputError: if there is no jobset, a job cannot run on this cluster, or the objective
                has a `finish_gain`.
        """
        if not jobsets:
            raise InputError("at least one jobset is needed")
        for jobset in jobsets:
            self.cluster.check(jobset)
        require_no_finish_gain(objective, "DeepRM's simulator")
        self._jobsets = tuple(jobsets)
        self._jobs = _pad(jobsets, objective, self.cluster.num_resources)
        self._job_class = _pad_classes(jobsets, most_jobs=self._jobs.arrival.shape[1])
        self._state = _empty_state(
            np.repeat(np.arange(len(jobsets), dtype=np.int32), episodes_per_jobset),
            self.layout,
            most_jobs=self._jobs.arrival.shape[1],
        )
        self._late = late_state(jobsets, objective, episodes_per_jobset)
        self._rows = np.arange(self.num_episodes, dtype=np.int32)
        self.reset()

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or the given ones, back to time 0 of their jobsets."""
        which = self._rows if rows is None else rows
        kernels.reset(self._shape, self._jobs, self._state, self._late, which)
        self._show_classes(which)

    @property
    def num_episodes(self) -> int:
        """Number of episodes loaded."""
        return int(self._state.jobset.size)

    @property
    def num_rows(self) -> int:
        """The same: one agent decides in each."""
        return self.num_episodes

    @property
    def episode(self) -> NDArray[np.int32]:
        """Index of each row's episode, its own, int32 ``(num_episodes,)``."""
        return self._rows

    @property
    def states(self) -> NDArray[np.uint8]:
        """The states of all episodes, uint8 ``(num_episodes, state_size)``: a view that changes."""
        return self._state.packed

    @property
    def time(self) -> NDArray[np.int32]:
        """The clock of each episode, int32 ``(num_episodes,)``: a view that changes."""
        return self._state.clock

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which episodes go on, bool ``(num_episodes,)``: a view that changes."""
        return self._state.active

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which episodes were cut at `max_time`, bool ``(num_episodes,)``: a view that changes."""
        return self._state.truncated

    @property
    def state(self) -> kernels.EpisodeStates:
        """All arrays of the state, for tests and viewers."""
        return self._state

    def step_all(self, actions: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Takes one decision in every episode.

        Args:
            actions: int32 ``(num_episodes,)``; those of finished episodes are ignored.

        Returns:
            Rewards, float64 ``(num_episodes,)``, and which episodes have ended, bool of the same
            shape.
        """
        rewards = np.empty(self.num_episodes, np.float64)
        self.step(self._rows, actions, rewards)
        return rewards, ~self._state.active

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some episodes, without allocating.

        Args:
            rows: int32 ``(m,)``, the episodes.
            actions: int32 ``(m,)``.
            rewards: float64 ``(m,)``, written.

        Returns:
            How many of them are still active.
        """
        left = kernels.step(
            self._shape, self._jobs, self._state, self._late, rows, actions, rewards
        )
        self._show_classes(rows)
        return int(left)

    def _show_classes(self, rows: NDArray[np.int32]) -> None:
        """Brings the classes of the jobs in the slots into states that have them."""
        if self.cluster.num_classes > 1:
            first = int(self.layout.classes.start)
            kernels.show_classes(self._job_class, self._state, rows, first)

    def take_over(
        self, other: "DeepRMSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies the states of episodes under way, with the late costs that have begun.

        Args:
            other: a simulator of the same cluster and rules, in which each source episode runs
                the same jobset under the same objective as its target does here.
            source: int32 ``(m,)``, episodes of the other one.
            target: int32 ``(m,)``, episodes of this one.
        """
        for name, part in other._state._asdict().items():
            if name != "jobset":
                _copy_rows(part, getattr(self._state, name), source, target)
        if self._late is not None and other._late is not None:
            for name in ("next", "rate", "gone"):
                _copy_rows(getattr(other._late, name), getattr(self._late, name), source, target)

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""
        state, jobs = self._state, self._jobs
        arrived = np.arange(jobs.arrival.shape[1]) < state.next_job[:, None]
        episode, job = (index.astype(np.int32) for index in np.nonzero(arrived))
        jobset = state.jobset[episode]
        start = state.start[episode, job]
        duration = jobs.duration[jobset, job]
        finish = np.where(start >= 0, start + duration, -1).astype(np.int32)
        finish[finish > state.clock[episode]] = -1
        return Schedule(
            episode=episode,
            job=job,
            arrival=jobs.arrival[jobset, job],
            start=start,
            finish=finish,
            duration=duration,
            demand=jobs.demand[jobset, job],
            end=state.clock.copy(),
            window=jobs.window[state.jobset],
            jobset=state.jobset.copy(),
            capacity=self._shape.capacity,
            job_class=self._job_class[jobset, job],
            attributes=gather_attributes(self._jobsets, jobset, job),
        )


def _pad(jobsets: Sequence[JobSet], objective: Objective, num_resources: int) -> kernels.Jobs:
    num_jobs = np.asarray([jobset.num_jobs for jobset in jobsets], np.int32)
    shape = (len(jobsets), max(1, int(num_jobs.max())))
    arrival = np.zeros(shape, np.int32)
    duration = np.ones(shape, np.int32)
    demand = np.zeros((*shape, num_resources), np.int32)
    cost = np.zeros(shape, np.float64)
    for k, jobset in enumerate(jobsets):
        arrival[k, : num_jobs[k]] = jobset.arrival
        duration[k, : num_jobs[k]] = jobset.duration
        demand[k, : num_jobs[k]] = jobset.demand
        cost[k, : num_jobs[k]] = objective.job_cost(jobset)
    return kernels.Jobs(
        arrival=arrival,
        duration=duration,
        demand=demand,
        cost=cost,
        num_jobs=num_jobs,
        window=np.asarray([jobset.window for jobset in jobsets], np.int32),
        busy_cost=float(objective.busy_cost),
        utilization_gain=float(objective.utilization_gain),
    )


def _copy_rows(
    before: NDArray[Any], after: NDArray[Any], source: NDArray[np.int32], target: NDArray[np.int32]
) -> None:
    """Copies rows of arrays that may be padded for different numbers of jobs."""
    if before.ndim == 1:
        after[target] = before[source]
    else:
        width = min(before.shape[1], after.shape[1])
        after[target, :width] = before[source, :width]


def _pad_classes(jobsets: Sequence[JobSet], most_jobs: int) -> NDArray[np.uint8]:
    """Classes of the jobs, uint8 ``(num_jobsets, most_jobs)``."""
    classes = np.zeros((len(jobsets), most_jobs), np.uint8)
    for k, jobset in enumerate(jobsets):
        classes[k, : jobset.num_jobs] = jobset.job_class
    return classes


def _empty_state(
    jobset: NDArray[np.int32], layout: StateLayout, most_jobs: int
) -> kernels.EpisodeStates:
    n = jobset.size
    per_job = (n, most_jobs)
    return kernels.EpisodeStates(
        jobset=jobset,
        packed=np.zeros((n, layout.size), np.uint8),
        clock=np.zeros(n, np.int32),
        next_job=np.zeros(n, np.int32),
        slots=np.full((n, layout.cluster.num_slots), -1, np.int32),
        num_in_slots=np.zeros(n, np.int32),
        backlog=np.zeros(per_job, np.int32),
        backlog_head=np.zeros(n, np.int32),
        backlog_tail=np.zeros(n, np.int32),
        running=np.zeros(per_job, np.int32),
        num_running=np.zeros(n, np.int32),
        num_gone=np.zeros(n, np.int32),
        start=np.full(per_job, -1, np.int32),
        cost_rate=np.zeros(n, np.float64),
        active=np.zeros(n, np.bool_),
        truncated=np.zeros(n, np.bool_),
    )
