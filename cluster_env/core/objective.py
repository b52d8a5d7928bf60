r"""What a scheduler is rewarded for, and the metric that follows from it.

Every objective is a sum over time of five terms: what each job in the system costs, what it costs
beside once it has been there for long, what it gains when it finishes, what a step costs while jobs
of the jobset are unfinished, and what the use of the cluster inside the arrival window gains. A
schedule says how long each lasted, so that the cost of an episode follows from the schedule: it is
exactly minus the return of an episode that finishes all jobs under the paper's rules, without
discounting. `Objective.metric` is derived so, and nobody writes a reward down twice.

`cluster_env.objectives.standard` has those that come with metasched.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.metric import Metric, makespan, utilization
from cluster_env.core.schedule import Schedule
from cluster_env.core.utility import final_utility, largest_utility

JobCost = Callable[[JobSet], NDArray[np.float64]]
JobSteps = Callable[[JobSet], NDArray[np.int32]]


@dataclass(frozen=True)
class LateCost:
    """What a job costs beside `Objective.job_cost` once it has been in the system for long.

    Over an episode, a job with the completion time C costs ``max(0, C - after) * cost`` by it.

    Attributes:
        cost: cost of one time step, float64 ``(num_jobs,)``.
        after: time steps from the arrival that are still free of it, int32 ``(num_jobs,)``, at
            least 0.
    """

    cost: JobCost
    after: JobSteps


@dataclass(frozen=True)
class Objective:
    """A reward, and what schedules are compared by under it.

    Attributes:
        name: what tables call it.
        job_cost: cost of one time step in the system for each job of a jobset, float64
            ``(num_jobs,)``.
        busy_cost: cost of a time step for which unfinished jobs of the jobset exist, those that
            are still to arrive included.
        utilization_gain: gain of a time step inside the arrival window in which all resources are
            in full use.
        late_costs: what jobs cost beside once they have been in the system for long.
        finish_gain: what each job gains when it finishes, float64 ``(num_jobs,)``; None if nothing.
            Not every simulator can give it, see `require_no_finish_gain`.
        utility_gain: weight of the final utility of each job that finishes, in worlds whose jobs
            have time-utility functions (`cluster_env.core.utility`).
        label: what figures call the derived metric; if empty, a mean cost with the name.
        measure: the metric, where the derived one will not do: because the field measures the
            quotient and not its cost, or where it has another sign, a scale or a constant beside.
    """

    name: str
    job_cost: JobCost
    busy_cost: float = 0.0
    utilization_gain: float = 0.0
    late_costs: tuple[LateCost, ...] = ()
    finish_gain: JobCost | None = None
    utility_gain: float = 0.0
    label: str = ""
    measure: Metric | None = None

    @cached_property
    def metric(self) -> Metric:
        """What schedules are compared by: `measure`, or what a job, or an episode, costs."""
        if self.measure is not None:
            return self.measure
        if self.busy_cost or self.utilization_gain:
            return episode_cost(self)
        label = self.label or f"mean cost of a job: {self.name}"
        return Metric(self.name, label, "job", self.cost_of_jobs)

    def cost_of_jobs(self, schedule: Schedule) -> NDArray[np.float64]:
        """What each job has cost by itself, less what its finish gained, float64 ``(num_jobs,)``.

        A job that did not finish costs what it had cost when its episode ended; one of a warm-up
        costs nothing.
        """
        completion = schedule.completion
        costs = completion * _of_jobs(self.job_cost, schedule)
        # Beside it, what a job costs from the age on at which it is late.
        for late in self.late_costs:
            steps = np.maximum(completion - _of_jobs(late.after, schedule), 0)
            costs += steps * _of_jobs(late.cost, schedule)
        return (costs - self._gained(schedule)) * schedule.counted

    def cost_of_episodes(self, schedule: Schedule) -> NDArray[np.float64]:
        """What each episode has cost, less what it gained, float64 ``(num_episodes,)``."""
        # What belongs to the machine.
        costs = self.busy_cost * makespan(schedule)
        if self.utilization_gain:
            costs -= self.utilization_gain * schedule.window * utilization(schedule)
        # What belongs to jobs. One product for each episode: its bits depend on no other episode.
        completion = schedule.completion
        of_jobs = np.zeros(schedule.num_episodes)
        for episode, (rows, jobset) in enumerate(schedule.by_episode):
            of_jobs[episode] = completion[rows] @ (self.job_cost(jobset) * jobset.counted)
            for late in self.late_costs:
                steps_late = np.maximum(completion[rows] - late.after(jobset), 0)
                of_jobs[episode] += steps_late @ (late.cost(jobset) * jobset.counted)
        # What jobs gained.
        if self.gains_at_finish:
            gained = self._gained(schedule) * schedule.counted
            of_jobs -= np.bincount(schedule.episode, gained, minlength=schedule.num_episodes)
        return costs + of_jobs

    @property
    def gains_at_finish(self) -> bool:
        """Whether a job may gain something when it finishes."""
        return self.finish_gain is not None or self.utility_gain != 0

    def gain_of_jobs(self, schedule: Schedule) -> NDArray[np.float64]:
        """The most that each job can gain by finishing, whether it did, float64 ``(num_jobs,)``."""
        gains = np.zeros(schedule.job.size)
        if self.finish_gain is not None:
            gains += _of_jobs(self.finish_gain, schedule)
        if self.utility_gain:
            gains += self.utility_gain * largest_utility(schedule)
        return gains

    def _gained(self, schedule: Schedule) -> NDArray[np.float64]:
        """What each job has gained, float64 ``(num_jobs,)``."""
        gains = np.zeros(schedule.job.size)
        if self.finish_gain is not None:
            gains += np.where(schedule.finished, _of_jobs(self.finish_gain, schedule), 0.0)
        if self.utility_gain:
            gains += self.utility_gain * final_utility(schedule)
        return gains


def _of_jobs(term: Callable[[JobSet], NDArray[Any]], schedule: Schedule) -> NDArray[np.float64]:
    """A term of the costs of all jobs, float64 ``(num_jobs,)``; each jobset is asked by itself."""
    values = np.zeros(schedule.job.size)
    if values.size:
        values[np.concatenate([rows for rows, _ in schedule.by_episode])] = np.concatenate(
            [term(jobset) for _, jobset in schedule.by_episode]
        )
    return values


def episode_cost(objective: Objective) -> Metric:
    """The metric of an objective that no other metric stands for, such as a mixture.

    Its value is what an episode costs (`Objective.cost_of_episodes`); a gain makes it negative.
    """
    label = objective.label or f"mean cost of an episode: {objective.name}"
    return Metric(objective.name, label, "episode", objective.cost_of_episodes)


def require_no_finish_gain(objective: Objective, simulator: str) -> None:
    """Refuses an objective whose reward a simulator, called so in the message, would not give.

    Raises:
        InputError: if jobs gain something when they finish.
    """
    if objective.gains_at_finish:
        raise InputError(
            f"the objective '{objective.name}' gives jobs a gain when they finish, which "
            f"{simulator} cannot give; choose an objective without finish_gain or utility_gain"
        )
