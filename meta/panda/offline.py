"""Learns an advisor from records of consumers alone, without a cluster (PANDA, section 4.1)."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from meta.panda.advisor import PolicyAdvisor, build_advisor
from meta.panda.records import Records

if TYPE_CHECKING:
    from rllib_configs.config.schema import ExperimentConfig

BATCH = 1024
"""Consumers of a step."""


def advantages_of(records: Records) -> NDArray[np.float64]:
    """Rewards less their mean over the episodes of the jobset, in standard deviations of these.

    float64 ``(n,)``; a consumer is compared with itself, in episodes with other weights.

    Raises:
        InputError: if a jobset has one episode alone.
    """
    advantages = np.empty(records.reward.size)
    for jobset in np.unique(records.jobset):
        rows = np.flatnonzero(records.jobset == jobset)
        each = np.unique(records.episode[rows]).size
        if each < 2 or rows.size % each:
            raise InputError(
                "the other episodes of a jobset are its baseline, so records need two of each, "
                "with all consumers"
            )
        # Episodes of a jobset have the same consumers in the same order.
        rewards = records.reward[rows].reshape(each, -1)
        advantages[rows] = (rewards - rewards.mean(axis=0)).ravel()
    return advantages / max(float(advantages.std()), 1e-9)


class RegressionData(NamedTuple):
    """What an advisor is to say of consumers; made by `regression_data`."""

    specs: torch.Tensor  # float32 (n, 7)
    targets: torch.Tensor  # float32 (n, weights)
    importance: torch.Tensor  # float32 (n, 1), how much each counts; 1 in the mean


def regression_data(records: Records, sharpness: float) -> RegressionData:
    """The weights of recorded actors, of which those that did better count more.

    Each counts as the exponential of its advantage times the sharpness (Peters and Schaal,
    *Reinforcement learning by reward-weighted regression*, 2007; the paper's "form of supervised
    learning").

    Raises:
        InputError: see `advantages_of`.
    """
    importance = np.exp(np.clip(sharpness * advantages_of(records), -5.0, 5.0))
    importance /= importance.mean()
    return RegressionData(
        torch.from_numpy(records.specification),
        torch.from_numpy(records.weights),
        torch.from_numpy(importance.astype(np.float32))[:, None],
    )


def regression_loss(
    network: PolicyAdvisor, data: RegressionData, rng: np.random.Generator
) -> torch.Tensor:
    """How far an advisor is from its targets, the mean over a batch that is drawn from them."""
    count = len(data.specs)
    batch = torch.from_numpy(rng.integers(0, count, min(BATCH, count)))
    missed = network.advise(data.specs[batch]) - data.targets[batch]
    return (data.importance[batch] * missed**2).mean()


def prepare(config: "ExperimentConfig") -> "ExperimentConfig":
    """Makes sure that an experiment can learn from its records.

    Raises:
        InputError: if it names no file, its network is another one, or the records are of other
            actors or say nothing.
    """
    training = config.training
    if training.network != "policy_advisor":
        raise InputError(
            "records describe the weights of actors, so training.algorithm=offline needs "
            f"the network policy_advisor, but {training.network} was given"
        )
    if training.records is None:
        raise InputError(
            "training.records must name a file of records to learn from; metasched.record "
            "writes one"
        )
    records = Records.read(training.records)
    size = build_advisor(config, config.task.world).shape.size
    if records.weights.shape[1] != size:
        raise InputError(
            f"the actors of the records have {records.weights.shape[1]} weights each, but those of "
            f"the network have {size}; records are of actors with training.actor=plans"
        )
    if not (records.departure >= 0).any():
        raise InputError(
            "no consumer of the records finished, so there is no outcome to learn from"
        )
    advantages_of(records)
    return config
