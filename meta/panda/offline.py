"""Learns an advisor from records of consumers alone, without a cluster (PANDA, section 4.1)."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from meta.panda.advisor import PolicyAdvisor
from meta.panda.network import made
from meta.panda.records import Records

if TYPE_CHECKING:
    from rllib_configs.schema import ExperimentConfig

BATCH = 1024
"""Consumers of a step."""


def advantages_of(records: Records) -> NDArray[np.float64]:
    """Rewards less their mean over the episodes of the jobset, in standard deviations of these.

    float64 ``(n,)``; a consumer is compared with itself, in episodes with other weights.

    Raises:
        InputError: if a jobset has one episode alone.
    """
    found = np.empty(records.reward.size)
    for jobset in np.unique(records.jobset):
        rows = np.flatnonzero(records.jobset == jobset)
        each = np.unique(records.episode[rows]).size
        if each < 2 or rows.size % each:
            raise InputError(
                "the other episodes of a jobset are its baseline, so records need two of each, "
                "with all consumers"
            )
        rewards = records.reward[rows].reshape(each, -1)
        found[rows] = (rewards - rewards.mean(axis=0)).ravel()
    return found / max(float(found.std()), 1e-9)


class Lessons(NamedTuple):
    """What an advisor is to say of consumers; made by `lessons_of`."""

    specs: torch.Tensor  # float32 (n, 7)
    targets: torch.Tensor  # float32 (n, weights)
    share: torch.Tensor  # float32 (n, 1), how much each counts; 1 in the mean


def lessons_of(records: Records, sharpness: float) -> Lessons:
    """Records as lessons, in which what did well counts more; see `learn`.

    Raises:
        InputError: see `advantages_of`.
    """
    weigh = np.exp(np.clip(sharpness * advantages_of(records), -5.0, 5.0))
    weigh /= weigh.mean()
    return Lessons(
        torch.from_numpy(records.specification),
        torch.from_numpy(records.weights),
        torch.from_numpy(weigh.astype(np.float32))[:, None],
    )


def loss_of(network: PolicyAdvisor, lessons: Lessons, rng: np.random.Generator) -> torch.Tensor:
    """How far an advisor is from lessons, the mean over a batch that is drawn from them."""
    count = len(lessons.specs)
    chosen = torch.from_numpy(rng.integers(0, count, min(BATCH, count)))
    missed = network.advise(lessons.specs[chosen]) - lessons.targets[chosen]
    return (lessons.share[chosen] * missed**2).mean()


def learn(
    network: PolicyAdvisor,
    records: Records,
    steps: int = 200,
    lr: float = 0.01,
    sharpness: float = 1.0,
    seed: int = 0,
) -> list[float]:
    """Makes what an advisor says of each specification more like the weights that did well.

    Regression on the recorded weights, each weighed by the exponential of its advantage
    (Peters and Schaal, Reinforcement learning by reward-weighted regression, ICML 2007; the paper's
    "form of supervised learning").

    Args:
        network: changed in place.
        records: of episodes with weights that differ.
        steps: of Adam, each on 1,024 consumers.
        lr: its learning rate.
        sharpness: how much more better ones count.
        seed: of the consumers' order.

    Returns:
        The loss at each step.
    """
    lessons = lessons_of(records, sharpness)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    rng, losses = np.random.default_rng(seed), []
    for _ in range(steps):
        loss = loss_of(network, lessons, rng)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


def prepare(config: "ExperimentConfig") -> "ExperimentConfig":
    """Makes sure that an experiment can learn from its records.

    Raises:
        InputError: if it names no file, its network is another one, or the records are of other
            actors or say nothing.
    """
    training = config.training
    if training.network != "policy_advisor":
        raise InputError(
            f"records say what weights of actors did, so training.algorithm=offline takes the "
            f"network policy_advisor, but {training.network} was given"
        )
    if training.records is None:
        raise InputError(
            "training.records names no file to learn from; metasched record writes one"
        )
    records = Records.read(training.records)
    size = made(config, config.task.build_world()).shape.size
    if records.weights.shape[1] != size:
        raise InputError(
            f"the actors of the records have {records.weights.shape[1]} weights each, but those of "
            f"the network have {size}; records are of actors with training.actor=plans"
        )
    if not (records.departure >= 0).any():
        raise InputError(
            "no consumer of the records was finished, so they say nothing of what does well"
        )
    advantages_of(records)
    return config
