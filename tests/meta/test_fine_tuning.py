"""DeepRM fine-tuned: the updates are those of its algorithm, and it learns a new objective."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from meta.adaptation import ADAPTATION
from meta.costs import costs_on
from meta.fine_tuning import ReinforcePolicy, fine_tune, load_reinforce_policy
from rllib_configs.networks.registry import make_sampler
from rllib_configs.runners.rollout import rollout
from rllib_configs.worlds.deeprm.module import DeepRMModule
from tests.tune_jobs.untrained_runs import make_run


@pytest.fixture
def policy(tmp_path: Path) -> ReinforcePolicy:
    return load_reinforce_policy(make_run(tmp_path / "run", "training.lr=0.01"))


def weights_of(policy: object) -> np.ndarray:
    return policy.network._head_weight  # type: ignore[attr-defined]


def test_the_first_update_is_reinforce_with_rmsprop(policy: ReinforcePolicy) -> None:
    task = policy.config.task.build("mine", 4)
    (after,) = fine_tune(policy, task, (1,), num_episodes=6, num_jobsets=2)
    played = rollout(
        task.world,
        make_sampler(policy.config, policy.weights),
        task.jobsets(Split.TRAIN, range(2)),
        task.objective,
        3,
        episode_keys(task.seed, ADAPTATION, 0, count=6),
    )
    # By hand: return to go less the mean over the jobset's three episodes, at the same decision.
    rows = list(zip(played.episode, played.decision, played.rewards, strict=True))
    to_go = [sum(r for e, d, r in rows if e == one and d >= at) for one, at, _ in rows]
    found = dict(zip(((e, d) for e, d, _ in rows), to_go, strict=True))
    baseline = [
        sum(found.get((other, d), 0.0) for other in range(6) if other // 3 == e // 3) / 3
        for e, d, _ in rows
    ]
    advantages = torch.tensor(np.array(to_go) - np.array(baseline), dtype=torch.float32)
    module = DeepRMModule(
        model_config={"world": task.world, "hidden": policy.config.training.hidden, "seed": 0}
    )
    module.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in policy.weights.items()})
    logits = module._forward({"obs": torch.from_numpy(played.states)})["action_dist_inputs"]
    chosen = torch.log_softmax(logits, 1)[np.arange(len(rows)), played.actions.astype(np.int64)]
    loss = -(chosen * advantages).sum()
    (gradient,) = torch.autograd.grad(loss, [module.head_weight])
    training = policy.config.training
    expected = module.head_weight.detach() - training.lr * gradient / torch.sqrt(
        (1 - training.rmsprop_decay) * gradient**2 + training.rmsprop_eps
    )
    assert np.allclose(weights_of(after), expected.numpy(), atol=1e-5)


def test_it_gives_back_the_policies_of_the_steps_asked_for(policy: ReinforcePolicy) -> None:
    task = policy.config.task.build("mine", 4)
    some = fine_tune(policy, task, (0, 2), num_episodes=4)
    every = fine_tune(policy, task, (0, 1, 2), num_episodes=4)
    assert np.array_equal(weights_of(some[0]), policy.weights["head_weight"])
    assert np.array_equal(weights_of(some[1]), weights_of(every[2]))
    assert not np.array_equal(weights_of(every[1]), weights_of(every[2]))


def test_it_learns(policy: ReinforcePolicy) -> None:
    task = policy.config.task.build("mine", 4)
    policies = fine_tune(policy, task, (0, 100))
    before, after = costs_on(policies, task, num_jobsets=60)
    assert after.value < 0.9 * before.value


def test_another_cluster_or_algorithm_is_refused(policy: ReinforcePolicy, tmp_path: Path) -> None:
    task = policy.config.task.build("mine", 0)
    cluster = replace(task.world.cluster, capacity=(5, 5))
    other = replace(task, world=replace(task.world, cluster=cluster))
    with pytest.raises(InputError, match="on the cluster alone that it was trained for"):
        fine_tune(policy, other, (1,))
    from tests.tune_jobs.untrained_scorers import ONE_TASK, make_scorer

    with pytest.raises(InputError, match="was trained by ppo"):
        load_reinforce_policy(make_scorer(tmp_path / "scorer", *ONE_TASK))
