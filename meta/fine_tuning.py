"""Training on with REINFORCE for a task, whatever the network: the slow way to adapt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns

from cluster_env.core.errors import InputError
from cluster_env.core.task import Task
from meta.adaptation import sample_step
from meta.plan import MAX_STEPS, check_numbers
from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline
from rllib_configs.learning.losses import policy_gradient_loss
from rllib_configs.learning.optimizers import RootMeanSquare
from rllib_configs.networks import Weights, make_sampler, network_of
from rllib_configs.policy_files import LearnedPolicy, read_weights
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.schema import ExperimentConfig


@dataclass(frozen=True, eq=False)
class ReinforcePolicy:
    """A policy that was trained by REINFORCE, as in DeepRM's paper.

    Attributes:
        name: what tables call it.
        config: what it was trained with; fine-tuning takes its optimizer, rates and discount.
        weights: by name, as the RLModule has them.
    """

    name: str
    config: ExperimentConfig
    weights: Weights


def load_reinforce_policy(run: str | Path) -> ReinforcePolicy:
    """Reads a policy that REINFORCE has trained.

    Raises:
        InputError: if there is no policy, it is broken, or something else trained it.
    """
    weights, config = read_weights(run)
    if config.training.algorithm != "reinforce":
        raise InputError(
            f"the policy in {run} was trained by {config.training.algorithm}, but only what "
            f"reinforce has trained can be trained on"
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
) -> list[LearnedPolicy]:
    """Goes on training with REINFORCE (DeepRM, figure 3), on new jobsets of a task.

    A step is one update of RMSProp from all decisions of its episodes, with the mean return of the
    same jobset's episodes at the same decision as the baseline. Steps play the jobsets that
    `meta.adaptation.adapt_policy` would.

    Args:
        policy: where it begins.
        task: in the world that the policy was trained for, but for its rules.
        steps: after how many steps to give back a policy, ascending.
        num_episodes: episodes of a step, shared out evenly to its jobsets, at least 2 each.
        num_jobsets: jobsets of a step.
        seed: of jobsets and actions.

    Returns:
        A policy for each of the steps.

    Raises:
        InputError: if a number is out of range, or the cluster is another.
    """
    check_numbers(steps[-1], num_episodes, num_jobsets, seed)
    make_sampler(policy.config, policy.weights, task.world)  # refuses another cluster
    found = {}
    updates = _updates(policy, task, steps[-1], num_episodes, num_jobsets, seed)
    for step, weights in enumerate(updates):
        if step in steps:
            sampler = make_sampler(policy.config, weights, task.world)
            found[step] = LearnedPolicy(f"{policy.name} +{step}", sampler, "sample")
    return [found[step] for step in steps]


def _updates(
    policy: ReinforcePolicy,
    task: Task,
    num_steps: int,
    num_episodes: int,
    num_jobsets: int,
    seed: int,
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """The weights after 0, 1, ... and all steps."""
    training = policy.config.training
    network = network_of(policy.config)
    module = network.module()(model_config=network.model_config(policy.config, task.world))
    module.load_state_dict(
        {name: torch.from_numpy(np.array(value)) for name, value in policy.weights.items()}
    )
    optimizer = RootMeanSquare(
        list(module.parameters()), training.lr, training.rmsprop_decay, training.rmsprop_eps
    )
    for step in range(num_steps + 1):
        weights = {name: value.numpy().copy() for name, value in module.state_dict().items()}
        yield weights
        if step == num_steps:
            return
        acting = make_sampler(policy.config, weights, task.world)
        batch = seed * MAX_STEPS + step
        rollouts = sample_step(task, acting, batch, num_episodes, num_jobsets)
        loss = _loss(module, rollouts, training.gamma)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _loss(module: Any, rollouts: Rollouts, gamma: float) -> torch.Tensor:
    """A scalar whose negative gradient is REINFORCE's update direction."""
    jobset = rollouts.row_jobset
    returns = returns_to_go(rollouts.rewards, rollouts.row, jobset.size, gamma)
    advantages = subtract_decision_baseline(returns, rollouts.row, rollouts.decision, jobset)
    batch = {Columns.OBS: torch.from_numpy(rollouts.states)}
    logits = module.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
    actions = torch.from_numpy(rollouts.actions)
    return policy_gradient_loss(logits, actions, torch.from_numpy(advantages.astype(np.float32)))[0]
