"""The metrics that objectives derive, against the formulas that they stand for."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule
from cluster_env.evaluation import METRICS, concatenate, get_metric, nonnegative_cost
from cluster_env.objectives import (
    OBJECTIVE_FAMILIES,
    OBJECTIVES,
    LateCost,
    Objective,
    episode_cost,
    find_objective,
    get_objective,
    mixture,
    require_no_finish_gain,
)
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from tests.cluster_env.schedules import in_order, schedule_of
from tests.cluster_env.worlds.stepping import step_all


def random_schedule(rng: np.random.Generator, num_episodes: int, most_jobs: int) -> Schedule:
    """Rows in any order; some jobs never finish, some never start, some episodes have no job."""
    episodes = []
    for count in rng.integers(0, most_jobs + 1, num_episodes):
        arrival = np.sort(rng.integers(0, 50, count))
        start = np.where(rng.random(count) < 0.1, -1, arrival + rng.integers(0, 300, count))
        duration, demand = rng.integers(1, 40, count), rng.integers(1, 11, (count, 3))
        jobset = JobSet.of(arrival, duration, demand, 50, rng.integers(0, 3, count))
        end = int(rng.integers(50, 300))
        episodes.append(schedule_of(jobset, start.tolist(), end, [10, 12, 14]))
    whole = concatenate(episodes)
    return in_order(whole, rng.permutation(whole.job.size))


def last_finish(schedule: Schedule) -> NDArray[np.float64]:
    until = np.where(schedule.finished, schedule.finish, schedule.end[schedule.episode])
    last = np.zeros(schedule.num_episodes, np.int64)
    np.maximum.at(last, schedule.episode, until)
    return last.astype(np.float64)


# What stood in `evaluation.metrics` before objectives derived their metrics.
FORMULAS: dict[str, Callable[[Schedule], NDArray[np.float64]]] = {
    "completion_time": lambda s: s.completion.astype(np.float64),
    "weighted_completion_time": lambda s: s.completion * (s.duration * s.demand.mean(axis=1)),
    "duration_weighted_completion_time": lambda s: s.completion.astype(np.float64) * s.duration,
    "makespan": last_finish,
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("seed", range(20))
def test_a_derived_metric_is_its_formula_to_the_last_bit(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    schedule = random_schedule(rng, int(rng.integers(1, 20)), int(rng.integers(0, 60)))
    found, expected = METRICS.get(name).values(schedule), FORMULAS[name](schedule)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_a_metric_without_jobs_has_no_values() -> None:
    empty = random_schedule(np.random.default_rng(0), 3, 0)
    assert METRICS.get("completion_time").values(empty).shape == (0,)
    assert METRICS.get("makespan").values(empty).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_objectives_travel_between_processes_with_their_metrics(name: str) -> None:
    objective = get_objective(name)
    assert objective.metric.name == name
    schedule = random_schedule(np.random.default_rng(1), 4, 9)
    again = pickle.loads(pickle.dumps(objective))
    values = again.metric.values(schedule)
    assert values.tobytes() == objective.metric.values(schedule).tobytes()


def test_a_copy_of_the_utilization_costs_the_idle_share() -> None:
    copy = pickle.loads(pickle.dumps(get_objective("utilization")))
    assert nonnegative_cost(copy) is METRICS.get("idle")


def by_weight(jobset: JobSet) -> NDArray[np.float64]:
    return np.asarray(jobset.attributes["weight"], np.float64)


def two_jobs() -> Schedule:
    """Completion times 3 and 5; the second job is cut. Weights 2 and 10."""
    jobset = JobSet.of([0, 1], [3, 2], [[1], [1]], 4, attributes={"weight": [10.0, 2.0]})
    return in_order(schedule_of(jobset, [4, 2], 5, [2]), [1, 0])


def test_an_objective_of_jobs_has_a_value_for_each_job_and_sees_their_attributes() -> None:
    objective = Objective(
        "weights", by_weight, late_costs=(LateCost(by_weight, lambda jobset: jobset.duration),)
    )
    metric = objective.metric
    assert (metric.name, metric.per, metric.higher_is_better) == ("weights", "job", False)
    assert metric.label == "mean cost of a job: weights"
    # 3 steps of which 1 is late, and 5 of which 2 are.
    assert metric.values(two_jobs()).tolist() == [2 * 3 + 2 * 1, 10 * 5 + 10 * 2]
    assert episode_cost(objective).values(two_jobs()).tolist() == [78]
    assert objective.metric is metric
    assert nonnegative_cost(objective) is metric


def test_an_objective_that_costs_by_the_episode_has_a_value_for_each_episode() -> None:
    objective = Objective("busy", by_weight, busy_cost=3.0, label="mean of mine")
    assert (objective.metric.per, objective.metric.label) == ("episode", "mean of mine")
    assert objective.metric.values(two_jobs()).tolist() == [3 * 5 + 2 * 3 + 10 * 5]
    assert mixture({"completion_time": 1.0}).metric.per == "episode"


def test_a_gain_at_the_finish_counts_for_jobs_that_finish() -> None:
    objective = Objective("accrual", lambda jobset: np.ones(jobset.num_jobs), finish_gain=by_weight)
    assert objective.metric.values(two_jobs()).tolist() == [3 - 2, 5]
    assert episode_cost(objective).values(two_jobs()).tolist() == [6]
    # No policy changes what all jobs could gain: the cost is what was spent and not gained.
    assert nonnegative_cost(objective).values(two_jobs()).tolist() == [3, 15]
    busy = Objective("late accrual", objective.job_cost, busy_cost=1.0, finish_gain=by_weight)
    assert nonnegative_cost(busy).values(two_jobs()).tolist() == [8 + 5 + 10]


def test_a_mixture_weighs_the_gains_of_its_parts(own: Callable[[Objective], str]) -> None:
    name = own(
        Objective("accrual", lambda jobset: np.zeros(jobset.num_jobs), finish_gain=by_weight)
    )
    mixed = get_objective(f"3 {name} + 1 completion_time")
    [(rows, jobset)] = two_jobs().by_episode
    assert rows.tolist() == [1, 0]
    assert mixed.finish_gain(jobset).tolist() == [30, 6]
    assert mixed.metric.values(two_jobs()).tolist() == [8 - 3 * 2]
    assert mixture({"slowdown": 1}).finish_gain is None


def test_simulators_without_gains_refuse_objectives_with_them() -> None:
    objective = Objective("accrual", by_weight, finish_gain=by_weight)
    with pytest.raises(InputError, match=r"'accrual' gives jobs a gain .* which my world cannot"):
        require_no_finish_gain(objective, "my world")
    simulator = DeepRM(Cluster()).simulator()
    jobset = JobSet.of([0], [1], [[1, 1]], attributes={"weight": [1]})
    with pytest.raises(InputError, match="DeepRM's simulator cannot give"):
        simulator.load([jobset], objective)
    simulator.load([jobset], Objective("weights", by_weight))


def test_an_objective_of_attributes_is_a_reward_and_a_metric_in_deeprm() -> None:
    jobset = JobSet.of([0, 1], [2, 1], [[1, 1]] * 2, attributes={"weight": [3, 5]})
    objective = Objective("weights", by_weight)
    simulator = DeepRM(Cluster()).simulator()
    simulator.load([jobset], objective)
    total = 0.0
    while simulator.active[0]:
        rewards, _ = step_all(simulator, np.int32([0]))
        total += rewards[0]
    schedule = simulator.schedule()
    assert schedule.attributes["weight"].tolist() == [3, 5]
    assert objective.metric.values(schedule).tolist() == [3 * 2, 5 * 1]
    assert total == -11


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Callable[[Objective], str]:
    """Registers an objective for the length of a test."""

    def register(objective: Objective) -> str:
        monkeypatch.setitem(OBJECTIVES._things, objective.name, objective)
        return objective.name

    return register


def test_an_objective_of_ones_own_needs_one_registration(own: Callable[[Objective], str]) -> None:
    name = own(Objective("mine", by_weight))
    assert get_metric(name) is OBJECTIVES.get(name).metric
    assert get_objective(name).metric is get_metric(name)
    assert get_metric(f"2 {name} + 1 makespan").values(two_jobs()).tolist() == [2 * 56 + 5]
    with pytest.raises(InputError, match="unknown metric 'mina': did you mean 'mine'"):
        get_metric("mina")
    with pytest.raises(InputError, match="unknown objective 'mina'"):
        get_metric("1 mina + 2 makespan")


def test_a_family_of_ones_own_needs_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(name: str) -> Objective:
        after = int(name.removeprefix("late(").removesuffix(")"))
        steps = LateCost(
            lambda jobset: np.ones(jobset.num_jobs),
            lambda jobset: np.full(jobset.num_jobs, after, np.int32),
        )
        return Objective(name, lambda jobset: np.zeros(jobset.num_jobs), late_costs=(steps,))

    monkeypatch.setitem(OBJECTIVE_FAMILIES._things, "late", late)
    assert get_objective("late(4)").metric.values(two_jobs()).tolist() == [0, 1]
    assert get_metric("late(2)").values(two_jobs()).tolist() == [1, 3]
    assert get_metric("2 late(2) + 1 makespan").values(two_jobs()).tolist() == [8 + 5]
    assert find_objective("later(2)") is None
    assert {"class_slowdown", "utility", "late"} <= set(OBJECTIVE_FAMILIES.names())


def test_utilization_counts_pieces_where_there_are_some() -> None:
    # 2 of 2 units for 1 step, then 1 unit for 9 steps of which 3 lie in the window.
    pieces = Pieces(np.int32([0, 1]), np.int32([0, 1]), np.int32([1, 10]), np.int32([[2], [1]]))
    schedule = replace(two_jobs(), pieces=pieces, end=np.int32([20]))
    assert METRICS.get("utilization").values(schedule).tolist() == [(2 + 3) / (2 * 4)]
