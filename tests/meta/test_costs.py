"""The cost of a task: positive, lower is better, and tied to the objective's return."""

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, nonnegative_cost
from cluster_env.worlds import get_heuristic
from meta.costs import mean_cost
from meta.tasks import Task, describe
from rllib_configs.config.task_schema import TaskSection
from tests.cluster_env.schedules import schedule_of


def task(objective: object, **workload: object) -> Task:
    section = TaskSection.model_validate({"objective": objective, "workload": workload})
    return section.build("mine", 7)


def two_jobs() -> Schedule:
    """Window 4, capacity 2: a job of 1 unit for 2 steps at once, one of 2 units for 1 step at 3."""
    return schedule_of(JobSet.of([0, 1], [2, 1], [[1], [2]], 4, [0, 1]), [0, 3], 4, [2])


@pytest.mark.parametrize(
    ("objective", "cost"),
    [
        ("slowdown", (2 / 2 + 3 / 1) / 2),
        ("completion_time", (2 + 3) / 2),
        ("makespan", 4.0),
        # In use are 2 of 8 units x steps, then 2 more: half of the window's.
        ("utilization", 1 - 0.5),
        # The sum of the slowdowns, and twice the idle share of the window of 4 steps.
        ({"utilization": 2}, 2 * 4 * 0.5),
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


def test_a_schedule_without_jobs_costs_nan() -> None:
    nothing = schedule_of(JobSet.of([], [], np.empty((0, 1)), 4), [], 4, [2])
    assert np.isnan(mean_cost(nonnegative_cost(task("slowdown").objective), nothing))


def test_a_description_names_objective_and_jobs() -> None:
    assert describe(task("makespan", load=1.1)) == "makespan, load 110%"
