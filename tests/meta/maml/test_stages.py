"""What a runner does with a task."""

import math
from typing import Any

import numpy as np
import torch

from meta.maml.decisions import Decisions
from meta.maml.options import MAMLOptions
from meta.maml.stages import StageSampler, TaskSample
from meta.maml.steps import Parameters, StepOptions, inner_step, scorer_of
from meta.tasks import Task, training_tasks
from rllib_configs.config.options import training_section
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from tests.meta.maml.tiny_tasks import TINY_TASKS

TRAINING = training_section("maml", "set_scorer")(hidden=8, jobsets=2, episodes_per_jobset=3)
META = MAMLOptions(inner_rate=2.0, gradient_clip=5.0)


def task_of(index: int) -> Task:
    return training_tasks(TINY_TASKS, 0).task(index)


def network_of(task: Task) -> tuple[SetScorer, Parameters, Parameters]:
    options = SetScorerOptions(TRAINING.hidden)
    network = SetScorer(task.world.feature_names, options, 1)
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    return network, parameters, {name: torch.tensor(0.7) for name in parameters}


def play(sampler: StageSampler, index: int, **changes: Any) -> TaskSample:
    task = task_of(index)
    _, parameters, rates = network_of(task)
    given = {"num_steps": 2, "iteration": 3, "index": index} | changes
    return sampler.play(task, parameters, rates, **given)


def assert_equal(found: Decisions, expected: Decisions) -> None:
    for name in Decisions.__dataclass_fields__:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_each_stage_is_sampled_with_the_parameters_that_the_last_one_led_to() -> None:
    sample = play(StageSampler(TRAINING, META, 0), 0)
    network, parameters, rates = network_of(task_of(0))
    scorer = scorer_of(network, task_of(0).world)
    assert len(sample.stages) == len(sample.scores) == 3
    for stage, decisions in enumerate(sample.stages):
        with torch.no_grad():
            logits = scorer(parameters, decisions.states)
        expected = torch.log_softmax(logits, 1).numpy()
        expected = expected[np.arange(decisions.num_rows), decisions.actions]
        assert np.allclose(decisions.log_probabilities, expected, rtol=0, atol=1e-5)
        shorter = {name: rate - 0.5 * math.log(stage + 1) for name, rate in rates.items()}
        options = StepOptions(gradient_clip=5.0, shrink=True)
        moved = inner_step(scorer, parameters, shorter, decisions, options)
        parameters = {name: value.detach() for name, value in moved.items()}
    first, second = sample.stages[:2]
    assert first.num_rows != second.num_rows or not np.array_equal(first.states, second.states)


def test_what_was_played_before_changes_no_number() -> None:
    sampler = StageSampler(TRAINING, META, 0)
    tasks = range(6)
    assert {task_of(index).world.cluster.capacity for index in tasks} == {(4, 4), (6, 6)}
    before = [play(sampler, index) for index in tasks]
    for index in reversed(tasks):
        for mix in (play(sampler, index), play(StageSampler(TRAINING, META, 0), index)):
            assert mix.scores == before[index].scores
            for found, expected in zip(mix.stages, before[index].stages, strict=True):
                assert_equal(found, expected)


def test_actions_depend_on_seed_and_iteration_and_fewer_steps_are_the_first_ones() -> None:
    sampler = StageSampler(TRAINING, META, 0)
    whole = play(sampler, 0)
    assert_equal(play(sampler, 0, num_steps=1).stages[0], whole.stages[0])
    alone = play(sampler, 0, num_steps=0).stages[0]  # it is weighed for an outer step
    assert np.array_equal(alone.states, whole.stages[0].states)
    assert np.array_equal(alone.actions, whole.stages[0].actions)
    inner = whole.stages[0].advantages
    scale = (inner @ alone.advantages) / (alone.advantages @ alone.advantages)
    assert scale > 1.5
    assert np.allclose(inner, scale * alone.advantages, rtol=1e-4, atol=1e-6)
    for other in (play(sampler, 0, iteration=4), play(StageSampler(TRAINING, META, 1), 0)):
        assert not np.array_equal(
            other.stages[0].log_probabilities, whole.stages[0].log_probabilities
        )


def test_score_counts_in_units_of_the_baseline() -> None:
    for index in range(6):
        task = task_of(index)
        for score in play(StageSampler(TRAINING, META, 0), index).scores:
            pays = task.objective.name == "utilization"
            assert 0.4 < score.value < 1.6 if pays else -2.5 < score.value < -0.6
            assert score.return_max >= score.return_mean
            assert score.num_episodes == 6
            assert score.headline >= 1
