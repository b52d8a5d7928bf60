"""A network is fitted to actions that rollouts have found better than its own."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rllib_configs.learning.flat import flattened, learned_parameters
from rllib_configs.learning.optimizers import Adam

Logits = Callable[[], torch.Tensor]
"""Of all decisions under the present parameters, ``(rows, num_actions)``."""


class Targets(NamedTuple):
    """What the fit is to choose."""

    probability: NDArray[np.float32]  # (rows, num_actions), of each action; they sum to 1
    weight: NDArray[np.float32]  # (rows,), at least 0; those above 0 have the mean 1


class Fitted(NamedTuple):
    """What came of a fit."""

    parameters: NDArray[np.float32]  # (num_learned,), see `rllib_configs.learning.flat`
    loss_before: float
    loss: float
    is_finite: bool


def targets_of(
    actions: NDArray[np.int32],
    gains: NDArray[np.float64],
    errors: NDArray[np.float64],
    num_actions: int,
    threshold: float,
    smoothing: float = 0.0,
) -> Targets:
    """What to choose at decisions, and how much each counts.

    The target is the action with the largest gain of those whose gain is above some standard
    errors, and else the policy's own. A decision counts by the root of what it costs on average to
    take another of the compared actions instead, so that decisions at which all are as good do not.
    Without the root, the few decisions of a crowded machine would decide alone.

    Args:
        actions: int32 ``(rows, most)``, the policy's own first, -1 for none.
        gains: float64 ``(rows, most)``, see `rllib_configs.runners.labels.Labels`.
        errors: float64 ``(rows, most)``.
        num_actions: of the world.
        threshold: standard errors by which a gain counts.
        smoothing: share of the probability that all compared actions have alike.
    """
    rows, present = np.arange(len(actions)), actions >= 0
    # Differences within the errors are chance, and count as none.
    certain = np.where(np.abs(gains) > threshold * errors, gains, 0.0)
    best = np.where(present, certain, -np.inf).argmax(axis=1)
    counts = present.sum(axis=1)
    lost = np.where(present, certain[rows, best][:, None] - certain, 0.0)
    weight = np.sqrt(lost.sum(axis=1) / np.maximum(counts - 1, 1))
    probability = np.zeros((rows.size, num_actions), np.float32)
    for place in range(actions.shape[1]):
        some = present[:, place]
        share = smoothing / counts[some] + (1 - smoothing) * (best[some] == place)
        probability[rows[some], actions[some, place]] = share
    mean = weight[weight > 0].mean() if weight.any() else 1.0
    return Targets(probability, (weight / mean).astype(np.float32))


def fit(
    module: torch.nn.Module,
    logits: Logits,
    targets: Targets,
    *,
    steps: int,
    lr: float,
    temperature: float,
    stay: float,
) -> Fitted:
    """Minimizes the weighted cross-entropy, beside the squared distance to the first parameters.

    The module's parameters change on the way, and are in the end what they were.
    """
    learned = learned_parameters(module)
    first = [parameter.detach().clone() for parameter in learned]
    probability, weight = (torch.from_numpy(array) for array in targets)
    optimizer = Adam([{"params": learned}], lr)

    def loss() -> torch.Tensor:
        log_probability = torch.log_softmax(logits() / temperature, dim=1)
        # Where the probability is 0 the logarithm may be that of what is not allowed.
        entropy = -torch.where(probability > 0, probability * log_probability, 0.0).sum(dim=1)
        distance = sum(
            ((now - before) ** 2).sum() for now, before in zip(learned, first, strict=True)
        )
        return (weight * entropy).mean() + stay * distance

    with torch.no_grad():
        before = float(loss())
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    with torch.no_grad():
        after = float(loss())
    found = flattened(learned)
    with torch.no_grad():
        for parameter, value in zip(learned, first, strict=True):
            parameter.copy_(value)
    return Fitted(found, before, after, bool(np.isfinite(found).all() and np.isfinite(after)))
