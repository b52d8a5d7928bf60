"""A policy that is told what its rewards went with, in place of gradient steps."""

import numpy as np
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from meta.adaptation import adapt_policy, save_adapted, untrained_policy
from meta.adaptation import load_meta_policy as load
from meta.maml.rewards import RewardSums
from meta.maml.stages import StageSampler
from meta.maml.steps import StepOptions, outer_loss, scorer_of
from meta.tasks import Task
from rllib_configs.conditioned import ConditionedWorld
from rllib_configs.config.loading import load_config
from rllib_configs.networks.conditions import rewards_told, seen_world
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.networks.set_scorer.policy_gradient import PolicyLoss
from rllib_configs.runners.rollout import Rollouts, rollout

CONFIG = load_config(  # the default cluster, for which networks are compiled
    "deeprm-ppo",
    [
        *("training.algorithm=maml", "training.adapt=context", "training.jobsets=2"),
        *("training.episodes_per_jobset=2", "training.hidden=32", "task.workload.window=12"),
    ],
)
POLICY = untrained_policy(CONFIG, 1)


def task_of(objective: str) -> Task:
    section = CONFIG.task.model_copy(update={"objective": objective})
    return section.build("a task", 3)


def played(task: Task, num_jobsets: int = 4) -> Rollouts:
    acting = POLICY.acting(task, POLICY.parameters, "acting", "sample").network
    jobsets = task.jobsets(Split.TRAIN, range(num_jobsets))
    keys = episode_keys(0, Split.TRAIN, 0, count=4 * num_jobsets)
    return rollout(task.world, acting, jobsets, task.objective, 4, keys)


def told(objective: str) -> dict[str, float]:
    task = task_of(objective)
    sums = RewardSums(task.world)
    sums.add(played(task))
    names = (name for name, _ in rewards_told(task.world))
    return dict(zip(names, sums.context().tolist(), strict=True))


def test_what_is_told_is_the_regression_of_rewards_on_what_waited() -> None:
    task = task_of("completion_time")
    rollouts, sums = played(task), RewardSums(task.world)
    sums.add(rollouts)
    rows = np.flatnonzero(rollouts.rewards)
    seen = task.world.features(rollouts.states[rows]).items.sum(axis=1, dtype=np.float64)
    rewards = rollouts.rewards[rows]
    varies = seen.std(axis=0) > 0
    x = (seen[:, varies] - seen[:, varies].mean(axis=0)) / seen[:, varies].std(axis=0)
    y = (rewards - rewards.mean()) / rewards.std()
    ridge = np.vstack([x, np.sqrt(0.1 * rows.size) * np.eye(x.shape[1])])
    wanted = np.zeros(seen.shape[1])
    wanted[varies] = np.linalg.lstsq(ridge, np.append(y, np.zeros(x.shape[1])))[0]
    assert np.allclose(sums.context(), [-1.0, *wanted], rtol=0, atol=0.6e-6)


def test_it_tells_objectives_apart() -> None:
    slowdown, completion = told("slowdown"), told("completion_time")
    assert slowdown["reward_by_inverse_duration"] < -0.3
    assert slowdown["reward_by_inverse_duration"] < completion["reward_by_inverse_duration"] - 0.2
    assert told("utilization")["reward_sign"] == pytest.approx(1.0)
    makespan = told("makespan")  # each step costs the same, whatever waits
    assert makespan.pop("reward_sign") == pytest.approx(-1.0)
    assert set(makespan.values()) == {0.0}


def test_episodes_add_up_and_no_episode_tells_nothing() -> None:
    task = task_of("slowdown")
    whole, pieces = RewardSums(task.world), RewardSums(task.world)
    assert not whole.context().any()
    rollouts = played(task)
    whole.add(rollouts)
    whole.add(rollouts)
    pieces.add(rollouts)
    assert np.allclose(pieces.context(), whole.context(), rtol=0, atol=1e-9)


def test_adapting_moves_the_biases_that_what_is_told_would_move_and_is_repeatable() -> None:
    task = task_of("slowdown")
    found = adapt_policy(POLICY, task, 2, num_episodes=4, num_jobsets=2).parameters
    again = adapt_policy(POLICY, task, 2, num_episodes=4, num_jobsets=2).parameters
    for parameters, others in zip(found, again, strict=True):
        assert all(torch.equal(parameters[name], others[name]) for name in parameters)
    moved = [name for name, value in found[2].items() if not torch.equal(value, found[0][name])]
    assert moved == ["context.bias"]
    assert not torch.equal(found[2]["context.bias"], found[1]["context.bias"])

    sums = RewardSums(task.world)
    acting = POLICY.acting(task, found[0], "acting", "sample").network
    keys = episode_keys(task.seed, 2000, 0, count=4)
    jobsets = task.jobsets(Split.TRAIN, range(2))
    rollouts = rollout(task.world, acting, jobsets, task.objective, 2, keys)
    sums.add(rollouts)
    names = seen_world(CONFIG.training, task.world, task.objective).feature_names[1]
    columns = [names.index(f"told_{name}") - len(names) for name, _ in rewards_told(task.world)]
    weights = found[0]["context.weight"][:, columns]
    wanted = found[0]["context.bias"] + weights @ torch.tensor(sums.context()).float()
    assert torch.allclose(found[1]["context.bias"], wanted, rtol=0, atol=1e-6)


def test_a_stage_is_learned_from_as_it_was_told() -> None:
    task = task_of("slowdown")
    sampler = StageSampler(CONFIG.training, CONFIG.training, 0)
    parameters = POLICY.parameters
    rates = {name: torch.zeros(()) for name in parameters}
    sample = sampler.play(task, parameters, rates, num_steps=1, iteration=0, index=0)
    assert len(sample.scores) == 2
    assert len(sample.stages) == 1
    assert isinstance(sample.world, ConditionedWorld)
    assert dict(sample.world.condition)["reward_sign"] == pytest.approx(-1.0)
    network = SetScorer(
        sample.world.feature_names, SetScorerOptions.of(CONFIG.training).without_critic
    )
    network.compiled = False
    learned = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    scorer, policy_loss = scorer_of(network, sample.world), PolicyLoss(clip=0.2)
    options = StepOptions()
    loss, _, norm = outer_loss(scorer, learned, rates, sample.stages, options, policy_loss)
    loss.backward()
    slopes = learned["context.weight"].grad
    columns = slopes[:, -len(rewards_told(task.world)) :].abs().sum(dim=0)
    assert (columns > 0).tolist() == [value != 0 for _, value in sample.world.condition]
    assert norm == 0


def test_who_was_told_is_not_told_anew(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task = task_of("slowdown")
    adapted = adapt_policy(POLICY, task, 1, num_episodes=4, num_jobsets=2).parameters[1]
    save_adapted(POLICY, task, adapted, tmp_path)
    with pytest.raises(InputError, match="adapt the run that it came from"):
        adapt_policy(load(tmp_path), task, 1, num_episodes=4, num_jobsets=2)


def test_context_needs_a_stage_before_the_one_that_counts() -> None:
    with pytest.raises(InputError, match=r"adapt=context .*inner_steps must be 1"):
        load_config("deeprm-rewards", ["training.inner_steps=0"])
