"""Training on with REINFORCE for a task, whatever the network: the slow way to adapt."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from cluster_env.core.errors import InputError
from cluster_env.task import Task
from meta.adaptation import sample_step, single_threaded
from meta.checks import MAX_STEPS, check_numbers
from meta.study import StudyPlan
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline
from rllib_configs.learning.losses import policy_gradient_loss
from rllib_configs.learning.optimizers import RootMeanSquare
from rllib_configs.networks.registry import Weights, make_sampler, network_of
from rllib_configs.policy_files import LearnedPolicy, read_weights
from rllib_configs.runners.rollout import Rollouts


@dataclass(frozen=True, eq=False)
class ReinforcePolicy:
    """A policy that was trained by REINFORCE, as in DeepRM's paper.

    Attributes:
        config: what it was trained with; fine-tuning takes its optimizer, rates and discount.
        weights: by name, as the RLModule has them.
    """

    name: str
    config: ExperimentConfig
    weights: Weights

    def after(self, task: Task, plan: StudyPlan, seed: int) -> list[LearnedPolicy]:
        """The policies after each of a plan's steps, see `fine_tune`; all draw their actions."""
        numbers = {"num_episodes": plan.num_episodes, "num_jobsets": plan.num_jobsets}
        return fine_tune(self, task, plan.steps, **numbers, seed=seed, warmup=plan.warmup)


def load_reinforce_policy(run: str | Path) -> ReinforcePolicy:
    """Reads a policy that REINFORCE has trained.

    Raises:
        InputError: if there is no policy, it is broken, or something else trained it.
    """
    weights, config = read_weights(run)
    if config.training.algorithm != "reinforce":
        raise InputError(
            f"the policy in {run} was trained by {config.training.algorithm}, but only "
            "policies of reinforce can be trained further"
        )
    return ReinforcePolicy(config.name, config, weights)


def fine_tune(
    policy: ReinforcePolicy,
    task: Task,
    steps: Sequence[int],
    *,
    num_episodes: int = 20,
    num_jobsets: int = 2,
    seed: int = 0,
    warmup: int = 0,
) -> list[LearnedPolicy]:
    """Goes on training with REINFORCE (DeepRM, figure 3), on new jobsets of a task.

    A step is one update of RMSProp from all decisions of its episodes, with the mean return of the
    same jobset's episodes at the same decision as the baseline. Steps play the jobsets that
    `meta.adaptation.adapt_policy` would, with the same numbers. There is a policy for each of
    ``steps``, ascending. The world is that which the policy was trained for, but for its rules.

    Raises:
        InputError: if a number is out of range, or the cluster is another.
    """
    check_numbers(steps[-1], num_episodes, num_jobsets, seed)
    training, network = policy.config.training, network_of(policy.config)
    make_sampler(policy.config, policy.weights, task.world)  # refuses another cluster
    module = network.module()(model_config=network.model_config(policy.config, task.world))
    module.load_state_dict(
        {name: torch.from_numpy(np.array(value)) for name, value in policy.weights.items()}
    )
    optimizer = RootMeanSquare(
        list(module.parameters()), training.lr, training.rmsprop_decay, training.rmsprop_eps
    )
    policies = []
    with single_threaded():
        for step in range(steps[-1] + 1):
            weights = {name: value.numpy().copy() for name, value in module.state_dict().items()}
            acting = make_sampler(policy.config, weights, task.world)
            if step in steps:
                policies.append(LearnedPolicy(f"{policy.name} +{step}", acting, "sample"))
            if step == steps[-1]:
                break
            batch = seed * MAX_STEPS + step
            rollouts = sample_step(task, acting, batch, num_episodes, num_jobsets, warmup)
            optimizer.zero_grad()
            _loss(module, rollouts, training.gamma).backward()
            optimizer.step()
    return policies


def _loss(module: Any, rollouts: Rollouts, gamma: float) -> torch.Tensor:
    """A scalar whose negative gradient is REINFORCE's update direction."""
    jobset = rollouts.row_jobset
    returns = returns_to_go(rollouts.rewards, rollouts.row, jobset.size, gamma)
    advantages = subtract_decision_baseline(returns, rollouts.row, rollouts.decision, jobset)
    batch = {Columns.OBS: torch.from_numpy(rollouts.states)}
    logits = module.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
    actions = torch.from_numpy(rollouts.actions)
    return policy_gradient_loss(logits, actions, torch.from_numpy(advantages.astype(np.float32)))[0]
