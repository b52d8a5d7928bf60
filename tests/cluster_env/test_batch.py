"""The jobs, costs and schedules that all simulators share, against sums by hand."""

from typing import Any

import numpy as np
import pytest

from cluster_env.core.batch import Batch, BatchSimulator, CostTable
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import LateCost, Objective, get_objective, mixture

SHORT = JobSet.of([0, 1], [4, 2], [[1], [3]], window=5, attributes={"weight": [1.0, 2.0]})
LONG = JobSet.of([0, 0, 7], [1, 5, 2], [[2], [1], [1]], attributes={"weight": [3.0, 4.0, 5.0]})


def batch(objective: str = "slowdown", episodes: int = 2) -> Batch:
    return Batch([SHORT, LONG], get_objective(objective), episodes)


def test_jobs_of_jobsets_and_of_episodes_stand_one_after_the_other():
    loaded = batch()
    assert loaded.jobset.tolist() == [0, 0, 1, 1]
    assert loaded.first.tolist() == [0, 2, 5]
    assert loaded.place.tolist() == [0, 2, 4, 7]
    assert loaded.num_jobs.tolist() == [2, 2, 3, 3]
    assert (loaded.num_episodes, loaded.num_places, loaded.most_jobs) == (4, 10, 3)
    assert loaded.job_of_place.tolist() == [0, 1, 0, 1, 2, 3, 4, 2, 3, 4]
    assert loaded.places(np.array([3, 0], np.int32)).tolist() == [7, 8, 9, 0, 1]
    assert loaded.column("duration", np.int64).tolist() == [4, 2, 1, 5, 2]
    assert loaded.window.tolist() == [5, 8]


def test_costs_are_those_of_the_objective_job_by_job():
    costs = batch("slowdown").costs
    np.testing.assert_array_equal(costs.rate, [1 / 4, 1 / 2, 1, 1 / 5, 1 / 2])
    assert costs.late_rate.shape == (0, 5)
    assert costs.finish_gain.tolist() == [0] * 5
    both = CostTable.of([SHORT, LONG], mixture({"makespan": 2, "utilization": 3}))
    assert both.busy_cost == 2
    assert both.utilization_gain == 3
    assert not both.rate.any()


def test_late_costs_have_a_row_each():
    late = LateCost(lambda jobs: jobs.duration * 0.5, lambda jobs: jobs.duration)
    objective = Objective("late", lambda jobs: jobs.duration * 0.0, late_costs=(late, late))
    costs = CostTable.of([SHORT, LONG], objective)
    np.testing.assert_array_equal(costs.late_rate, [[2, 1, 0.5, 2.5, 1]] * 2)
    np.testing.assert_array_equal(costs.late_after, [[4, 2, 1, 5, 2]] * 2)


def test_a_job_cannot_be_late_before_it_arrives():
    late = LateCost(lambda jobs: jobs.duration * 1.0, lambda jobs: jobs.duration - 5)
    with pytest.raises(InputError, match="charges a job 4 steps before it arrives"):
        CostTable.of(
            [LONG], Objective("early", lambda jobs: jobs.duration * 1.0, late_costs=(late,))
        )


def test_a_schedule_has_what_has_arrived():
    loaded = batch(episodes=1)
    start = np.array([0, 4, 0, 1, -1])
    end = np.array([5, 6])
    finish = loaded.finish_of(start, end)
    assert finish.tolist() == [4, -1, 1, 6, -1]
    schedule = loaded.schedule(
        arrived=np.array([2, 2]), start=start, finish=finish, end=end, capacity=[3]
    )
    assert schedule.episode.tolist() == [0, 0, 1, 1]
    assert schedule.job.tolist() == [0, 1, 0, 1]
    assert schedule.start.tolist() == [0, 4, 0, 1]
    assert schedule.finish.tolist() == [4, -1, 1, 6]
    assert schedule.window.tolist() == [5, 8]
    assert schedule.attributes["weight"].tolist() == [1, 2, 3, 4]
    assert schedule.demand.tolist() == [[1], [3], [2], [1]]
    assert loaded.first_rows(np.array([2, 2])).tolist() == [0, 2]


def test_what_stands_in_places_is_copied_episode_by_episode():
    source, target = batch(episodes=2), batch(episodes=1)
    theirs, own = np.arange(10), np.full(5, -1)
    target.copy_places(source, np.array([3, 1]), np.array([1, 0]), [(own, theirs)])
    assert own.tolist() == [2, 3, 7, 8, 9]


class Halving:
    """A world that serves half of each duration, and runs no job of more than 2 units."""

    def check(self, jobset: JobSet) -> None:
        if jobset.demand.max(initial=0) > 2:
            raise InputError("a job asks for more than 2 units")

    def served(self, jobset: JobSet) -> JobSet:
        return JobSet(jobset.arrival, -(-jobset.duration // 2), jobset.demand, jobset.window)


class Idle(BatchSimulator):
    """A simulator whose jobs all start when they arrive."""

    def allocate(self) -> None:
        num_rows = self.batch.num_episodes
        self.states, self.time = np.zeros((num_rows, 1), np.int32), np.zeros(num_rows, np.int64)
        self.active, self.truncated = np.zeros((2, num_rows), np.bool_)

    def reset(self, rows: Any = None) -> None:
        self.active[slice(None) if rows is None else rows] = True

    def step(self, rows: Any, actions: Any, rewards: Any) -> int:
        raise NotImplementedError

    def take_over(self, other: Any, source: Any, target: Any) -> None:
        raise NotImplementedError

    def schedule(self) -> Schedule:
        start = self.batch.column("arrival", np.int64)[self.batch.job_of_place]
        end = np.full(self.batch.num_episodes, 99)
        finish = self.batch.finish_of(start, end)
        return self.batch.schedule(
            arrived=self.batch.num_jobs, start=start, finish=finish, end=end, capacity=[9]
        )


def test_loading_checks_and_serves_jobsets_and_resets():
    simulator = Idle(Halving())
    simulator.load([LONG], get_objective("slowdown"), 3)
    assert simulator.num_rows == 3
    assert simulator.episode.tolist() == [0, 1, 2]
    assert simulator.active.all()
    assert simulator.schedule().duration.tolist() == [1, 3, 1] * 3
    np.testing.assert_array_equal(simulator.batch.costs.rate, [1, 1 / 3, 1])
    with pytest.raises(InputError, match="more than 2 units"):
        simulator.load([LONG, SHORT], get_objective("slowdown"))
    with pytest.raises(InputError, match="at least one jobset"):
        simulator.load([], get_objective("slowdown"))
