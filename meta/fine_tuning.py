"""DeepRM's network and algorithm, unchanged, trained on for a task: the slow way to adapt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split, episode_keys
from cluster_env.worlds.deeprm.lookups import LookupLayout
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from cluster_env.worlds.deeprm.state import StateLayout
from meta.adaptation import ADAPTATION, MAX_STEPS, check_numbers
from meta.tasks.task import Task
from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline
from rllib_configs.learning.losses import policy_gradient_loss
from rllib_configs.learning.optimizers import RootMeanSquare
from rllib_configs.networks import Weights, make_sampler
from rllib_configs.policies import LearnedPolicy, read_weights
from rllib_configs.runners.rollout import Rollouts, rollout
from rllib_configs.schema import ExperimentConfig
from rllib_configs.worlds.deeprm.lookup_sum import LookupLinear


@dataclass(frozen=True, eq=False)
class DeepRMPolicy:
    """A policy that was trained as in DeepRM's paper.

    Attributes:
        name: what tables call it.
        config: what it was trained with; fine-tuning takes its optimizer, rates and discount.
        weights: by name, as the RLModule has them.
    """

    name: str
    config: ExperimentConfig
    weights: Weights


def load_deeprm_policy(run: str | Path) -> DeepRMPolicy:
    """Reads a policy of DeepRM's network.

    Raises:
        InputError: if there is no policy, it is broken, or its network is another.
    """
    weights, config = read_weights(run)
    if config.training.network != "deeprm_mlp":
        raise InputError(
            f"the policy in {run} has the network {config.training.network}, not deeprm_mlp"
        )
    return DeepRMPolicy(config.name, config, weights)


def fine_tune(
    policy: DeepRMPolicy,
    task: Task,
    steps: Sequence[int],
    *,
    episodes: int = 20,
    jobsets: int = 2,
    seed: int = 0,
) -> list[LearnedPolicy]:
    """Goes on training with REINFORCE (DeepRM, figure 3), on new jobsets of a task.

    A step is one update of RMSProp from all decisions of its episodes, with the mean return of the
    same jobset's episodes at the same decision as the baseline. Steps play the jobsets that
    `meta.adaptation.adapt_policy` would.

    Args:
        policy: where it begins.
        task: on the cluster that the policy was trained for.
        steps: after how many steps to give back a policy, ascending.
        episodes: episodes of a step, shared out evenly to its jobsets, at least 2 each.
        jobsets: jobsets of a step.
        seed: of jobsets and actions.

    Returns:
        A policy for each of the steps.

    Raises:
        InputError: if a number is out of range, or the cluster is another.
    """
    check_numbers(steps[-1], episodes, jobsets, seed)
    if task.section.cluster != policy.config.task.cluster:
        raise InputError(
            f"the policy {policy.name} has DeepRM's network, which can be used on the cluster "
            f"alone that it was trained for"
        )
    found = {}
    for step, weights in enumerate(_updates(policy, task, steps[-1], episodes, jobsets, seed)):
        if step in steps:
            found[step] = LearnedPolicy(
                f"{policy.name} +{step}", make_sampler(policy.config, weights), "sample"
            )
    return [found[step] for step in steps]


def _updates(
    policy: DeepRMPolicy, task: Task, steps: int, episodes: int, jobsets: int, seed: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """The weights after 0, 1, ... and all steps."""
    training = policy.config.training
    layout = LookupLayout(StateLayout(task.cluster), training.since_column)
    parameters = {
        name: torch.nn.Parameter(torch.from_numpy(np.array(value)))
        for name, value in policy.weights.items()
    }
    optimizer = RootMeanSquare(
        list(parameters.values()), training.lr, training.rmsprop_decay, training.rmsprop_eps
    )
    simulator = DeepRMSimulator(task.cluster, task.rules, task.section.max_time)
    for step in range(steps + 1):
        weights = {name: value.detach().numpy().copy() for name, value in parameters.items()}
        yield weights
        if step == steps:
            return
        batch = seed * MAX_STEPS + step
        rollouts = rollout(
            simulator,
            make_sampler(policy.config, weights),
            task.jobsets(Split.TRAIN, range(batch * jobsets, (batch + 1) * jobsets)),
            task.objective,
            episodes // jobsets,
            episode_keys(task.seed, ADAPTATION, batch, count=episodes),
        )
        loss = _loss(parameters, layout, rollouts, training.gamma)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _loss(
    parameters: dict[str, torch.nn.Parameter],
    layout: LookupLayout,
    rollouts: Rollouts,
    gamma: float,
) -> torch.Tensor:
    """A scalar whose negative gradient is REINFORCE's update direction."""
    returns = returns_to_go(rollouts.rewards, rollouts.episode, rollouts.num_episodes, gamma)
    advantages = subtract_decision_baseline(
        returns, rollouts.episode, rollouts.decision, rollouts.jobset
    )
    lookups = torch.from_numpy(layout.lookups(rollouts.states))
    first = LookupLinear.apply(  # type: ignore[no-untyped-call]
        parameters["hidden_weight"], parameters["hidden_bias"], lookups, layout
    )
    logits = torch.relu(first) @ parameters["head_weight"] + parameters["head_bias"]
    actions = torch.from_numpy(rollouts.actions)
    return policy_gradient_loss(logits, actions, torch.from_numpy(advantages.astype(np.float32)))[0]
