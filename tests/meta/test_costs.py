"""The cost of a task: positive, lower is better, and tied to the objective's return."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, nonnegative_cost
from cluster_env.worlds import get_heuristic
from meta.costs import mean_cost
from meta.tasks import Task, describe
from rllib_configs.task_schema import TaskSection


def task(objective: object, **workload: object) -> Task:
    section = TaskSection.model_validate({"objective": objective, "workload": workload})
    return section.build("mine", 7)


def two_jobs() -> Schedule:
    """Window 4, capacity 2: a job of 1 unit for 2 steps at once, one of 2 units for 1 step at 3."""
    return Schedule(
        episode=np.zeros(2, np.int32),
        job=np.arange(2, dtype=np.int32),
        arrival=np.array([0, 1], np.int32),
        start=np.array([0, 3], np.int32),
        finish=np.array([2, 4], np.int32),
        duration=np.array([2, 1], np.int32),
        demand=np.array([[1], [2]], np.int32),
        end=np.array([4], np.int32),
        window=np.array([4], np.int32),
        jobset=np.zeros(1, np.int32),
        capacity=np.array([2], np.int32),
        job_class=np.array([0, 1], np.uint8),
    )


@pytest.mark.parametrize(
    ("objective", "cost"),
    [
        ("slowdown", (2 / 2 + 3 / 1) / 2),
        ("completion_time", (2 + 3) / 2),
        ("makespan", 4.0),
        # In use are 2 of 8 units x steps, then 2 more: half of the window's.
        ("utilization", 1 - 0.5),
        # The sum of the slowdowns, and twice the idle share of the window of 4 steps.
        ({"slowdown": 1, "utilization": 2}, 4 + 2 * 4 * 0.5),
        ({"slowdown": 1, "makespan": 0.5}, 4 + 0.5 * 4),
        ("duration_weighted_completion_time", (2 * 2 + 1 * 3) / 2),
        ("class_slowdown(1, 5)", (1 * 1 + 5 * 3) / 2),
    ],
)
def test_costs_by_hand(objective: object, cost: float) -> None:
    assert mean_cost(nonnegative_cost(task(objective).objective), two_jobs()) == pytest.approx(cost)


@pytest.mark.parametrize("objective", ["utilization", {"utilization": 3.0}])
def test_a_policy_that_uses_the_cluster_better_has_a_lower_cost_above_zero(
    objective: object,
) -> None:
    mine = task(objective, load=1.5)
    jobsets = mine.jobsets(Split.HELD_OUT, range(20))
    costs, uses = [], []
    for name in ("sjf", "random"):
        schedule = evaluate(get_heuristic(name, mine.world), jobsets, mine.world)
        costs.append(mean_cost(nonnegative_cost(mine.objective), schedule))
        uses.append(mean_cost(nonnegative_cost(task("slowdown").objective), schedule))
    assert 0 < costs[0] < costs[1]
    assert uses[0] < uses[1]


def test_idle_share_and_its_mixture_rank_alike() -> None:
    alone, mixed = (
        nonnegative_cost(task("utilization").objective),
        nonnegative_cost(task({"utilization": 2}).objective),
    )
    schedule = two_jobs()
    assert mixed.values(schedule) == pytest.approx(2 * 4 * alone.values(schedule))


def test_jobsets_are_those_of_the_seed_and_split() -> None:
    mine = task("slowdown")
    again = mine.jobsets(Split.TRAIN, [5])[0]
    assert np.array_equal(mine.jobsets(Split.TRAIN, range(6))[5].demand, again.demand)
    other = replace(mine, seed=8).jobsets(Split.TRAIN, [5])[0]
    assert not np.array_equal(other.demand, again.demand)


def test_a_schedule_without_jobs_costs_nan() -> None:
    empty = two_jobs()
    nothing = Schedule(
        **{
            name: getattr(empty, name)[:0]
            if name not in ("end", "window", "jobset", "capacity", "attributes", "pieces")
            else getattr(empty, name)
            for name in Schedule.__dataclass_fields__
        }
    )
    assert np.isnan(mean_cost(nonnegative_cost(task("slowdown").objective), nothing))


def test_a_description_names_objective_and_jobs() -> None:
    assert describe(task("makespan", load=1.1)) == "makespan, load 110%"
