"""What comparisons of methods rest on: every task, seed and step once, and rates chosen apart."""

from dataclasses import replace
from itertools import permutations

import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta import study
from meta.adaptation import untrained_policy
from meta.costs import Cost, baselines_of, costs_on, heuristics_for
from meta.study import Measured, StudyPlan, choose_rate, measure
from meta.tasks import FamilySection, Task
from rllib_configs.config.loading import load_config
from tests.tune_jobs.untrained_runs import SMALL_TASK

CONFIG = load_config("deeprm-ppo", [*SMALL_TASK, "training.hidden=8"])
FAMILY = FamilySection.model_validate(
    {
        "name": "small",
        "base": CONFIG.task.model_dump(),
        "vary": {"objectives": ["slowdown", "makespan"], "load": [0.5, 0.9]},
    }
)
PLAN = StudyPlan(
    num_tasks=2,
    num_seeds=2,
    steps=(0, 1, 3),
    num_episodes=4,
    num_jobsets=2,
    num_evaluation_jobsets=6,
    num_rate_tasks=2,
    decode="sample",
)


def test_the_small_family_is_possible() -> None:
    assert FAMILY.check() is FAMILY


def test_every_task_seed_and_step_is_measured_once_and_step_0_alike_for_all_seeds() -> None:
    policy = untrained_policy(CONFIG, 0)
    tasks = PLAN.split(FAMILY, Split.HELD_OUT)
    found = list(measure(policy, tasks, PLAN))
    keys = [(one.task, one.seed, one.step) for one in found]
    assert keys == [(t, s, k) for t in range(2) for s in range(2) for k in (0, 1, 3)]
    costs = {key: one.cost for key, one in zip(keys, found, strict=True)}
    for task in range(2):
        assert costs[task, 0, 0] == costs[task, 1, 0]
        assert costs[task, 0, 3] != costs[task, 1, 3]
    (third,) = policy.after(tasks[1], replace(PLAN, steps=(3,)), 1)
    (after,) = costs_on([third], tasks[1], num_jobsets=6)
    assert costs[1, 1, 3] == after.value


def test_without_step_0_the_other_steps_come_out_the_same() -> None:
    policy = untrained_policy(CONFIG, 0)
    plan = StudyPlan(**{**vars(PLAN), "steps": (1, 3)})
    tasks = PLAN.split(FAMILY, Split.HELD_OUT)
    without = list(measure(policy, tasks, plan))
    others = [one for one in measure(policy, tasks, PLAN) if one.step]
    assert str(without) == str(others)  # no job is large: NaN is not equal to itself


def test_a_step_that_is_worse_on_validation_jobsets_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy, (task,) = untrained_policy(CONFIG, 0), PLAN.split(FAMILY, Split.HELD_OUT)[1:]
    by_steps = policy.after(task, PLAN, 0)  # after 0, 1 and 3 steps
    costs = costs_on(by_steps, task, num_jobsets=100, split=Split.VALIDATION)
    assert len({cost.value for cost in costs}) > 1
    for order in permutations(range(3)):
        some = [by_steps[k] for k in order]
        monkeypatch.setattr(type(policy), "after", lambda *_, some=some: some)
        plan = replace(PLAN, num_seeds=1)
        last = [one.cost for one in measure(policy, [task], plan)]
        best = [one.cost for one in measure(policy, [task], replace(plan, keep="best"))]
        for place in range(3):
            lowest = min(range(place + 1), key=lambda k: costs[order[k]].value)
            assert best[place] == last[lowest]


def test_a_baseline_is_the_lowest_cost_of_three_tuned_heuristics() -> None:
    tasks = PLAN.split(FAMILY, Split.HELD_OUT)
    baselines = baselines_of(tasks, 6)
    for task, baseline in zip(tasks, baselines, strict=True):
        policies = [*heuristics_for(task, task.spec.baselines).values()]
        costs = costs_on(policies, task, num_jobsets=6)
        best = min(costs, key=lambda cost: cost.value)
        assert (baseline.policy, baseline.value) == (best.policy, best.value)


def test_the_rate_with_the_lowest_mean_ratio_on_validation_tasks_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, Split]] = []

    def made_up(policy, tasks, plan, *, split, num_seeds):  # type: ignore[no-untyped-def]
        seen.extend((task.name, split) for task in tasks)
        rate = policy.rates["score.bias"]
        for index in range(len(tasks)):
            yield Measured(index, 0, 0, 0.0, 0)  # step 0 says nothing about a rate
            yield Measured(index, 0, 1, 10 * (index + 1) * (1 + (rate - 2) ** 2), 0)

    monkeypatch.setattr(study, "measure", made_up)
    monkeypatch.setattr(
        study, "baselines_of", lambda tasks, *_, **__: [Cost("sjf", 10.0, 0), Cost("sjf", 20.0, 0)]
    )
    rate, scores = choose_rate(untrained_policy(CONFIG, 0), FAMILY, PLAN)
    assert rate == 2.0
    assert scores == pytest.approx({r: 1 + (r - 2) ** 2 for r in PLAN.rates})
    assert {split for _, split in seen} == {Split.VALIDATION}
    assert {name for name, _ in seen} == {"small:validation:0", "small:validation:1"}


def test_rates_are_chosen_without_a_look_at_held_out_tasks_or_jobsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    splits = set()
    draw = Task.jobsets

    def watched(self, split, indices):  # type: ignore[no-untyped-def]
        splits.add(split)
        assert "validation" in self.name
        return draw(self, split, indices)

    monkeypatch.setattr(Task, "jobsets", watched)
    plan = StudyPlan(**{**vars(PLAN), "rates": (0.5, 2.0)})
    rate, scores = choose_rate(untrained_policy(CONFIG, 0), FAMILY, plan)
    assert scores[rate] == min(scores.values())
    assert Split.HELD_OUT not in splits


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_tasks": 0}, "num_tasks must be at least 1"),
        ({"steps": (0, 3, 1)}, "ascending"),
        ({"steps": ()}, "ascending"),
        ({"rates": (0.0,)}, "inner rates must be above 0"),
    ],
)
def test_a_plan_without_sense_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        StudyPlan(**change)  # type: ignore[arg-type]
