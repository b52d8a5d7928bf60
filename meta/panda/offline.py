"""Learns an advisor from records of consumers alone, without a cluster (PANDA, section 4.1)."""

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from meta.panda.advisor import PolicyAdvisor
from meta.panda.records import Records


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
    weigh = np.exp(np.clip(sharpness * advantages_of(records), -5.0, 5.0))
    weigh /= weigh.mean()
    specs, targets = torch.from_numpy(records.specification), torch.from_numpy(records.weights)
    share = torch.from_numpy(weigh.astype(np.float32))[:, None]
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    rng, losses = np.random.default_rng(seed), []
    for _ in range(steps):
        chosen = torch.from_numpy(rng.integers(0, len(specs), min(1024, len(specs))))
        missed = network.advise(specs[chosen]) - targets[chosen]
        loss = (share[chosen] * missed**2).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses
