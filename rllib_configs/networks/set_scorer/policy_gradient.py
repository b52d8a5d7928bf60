"""Gradients of policy losses by the set scorer's weights, without PyTorch.

What `differentiable_scores` and PyTorch compute together in many passes over a batch is done here
for some rows at a time, which stay in a cache: scores, the loss of their softmax, and back. There
is no graph, so there are no derivatives of second order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.world import Features
from rllib_configs.networks.set_scorer.autograd import transposed
from rllib_configs.networks.set_scorer.gradient import BLOCK, backward_rows, block_type
from rllib_configs.networks.set_scorer.kernels import (
    Floats,
    Records,
    entry_type,
    row_type,
    score_rows,
    weights_type,
)

_PIECE = 4 * BLOCK  # rows; what is kept of them on the way fits a cache


@dataclass(frozen=True, eq=False)
class Choices:
    """Decisions and what the network sees of them, those of a group one after the other.

    Attributes:
        features: what the network sees; the chosen actions are allowed.
        actions: int32 ``(n,)``.
        log_probabilities: float32 ``(n,)``, of the actions when they were chosen.
        advantages: float32 ``(n,)``.
        bounds: int64 ``(num_groups + 1,)``, first row of each group, and n.
    """

    features: Features
    actions: NDArray[np.int32]
    log_probabilities: Floats
    advantages: Floats
    bounds: NDArray[np.int64]

    @property
    def num_rows(self) -> int:
        """Number of decisions."""
        return int(self.actions.size)

    @property
    def num_bytes(self) -> int:
        """Memory that it takes."""
        arrays: Sequence[NDArray[Any]] = (*self.features, self.actions, self.advantages)
        return sum(array.nbytes for array in (*arrays, self.log_probabilities))


@dataclass(frozen=True)
class PolicyLoss:
    """What is descended: minus the mean over decisions of what an action gains.

    Attributes:
        ratio: whether the gain is the advantage times the ratio of the action's new probability
            to its old one; else it is times the logarithm of the new one.
        clip: how far the ratio counts, see `rllib_configs.learning.losses.clipped_loss`.
        entropy_coefficient: gain for each nat of entropy.
    """

    ratio: bool = True
    clip: float = np.inf
    entropy_coefficient: float = 0.0


class PolicyGradient:
    """Computes gradients for one network; it keeps room to work in, and nothing else.

    Args:
        context_size: features of the context.
        num_items: of the world.
        item_size: features of an item.
        width: units of each hidden layer.
    """

    def __init__(self, context_size: int, num_items: int, item_size: int, width: int) -> None:
        self._weights = weights_type(context_size, item_size, width)
        self._first = np.empty(_PIECE + 1, np.int64)
        self._item = np.empty(_PIECE * num_items, np.int64)
        self._rows = np.empty(_PIECE, row_type(width))
        self._entries = np.empty(_PIECE * num_items, entry_type(width))
        self._logits = np.empty((_PIECE, num_items + 1), np.float32)
        self._slopes = np.empty((_PIECE, num_items + 1), np.float32)
        self._pooled = np.empty((_PIECE, width), np.float32)
        self._no_slopes = np.zeros((_PIECE, width), np.float32)
        self._block = np.empty(1, block_type(num_items, item_size, width))

    def __call__(self, weights: Floats, choices: Choices, loss: PolicyLoss) -> tuple[Floats, float]:
        """Computes the gradient of each group's part of a loss.

        Args:
            weights: float32 ``(num_weights,)``, those of `pack` as one vector.
            choices: decisions of any number; the parts add up to the mean over all.
            loss: what of.

        Returns:
            Float32 ``(num_groups, num_weights)``, and the mean entropy, in nats.
        """
        packed = weights.view(self._weights)
        back = transposed(packed)
        bounds = choices.bounds.tolist()
        gradients = np.zeros((len(bounds) - 1, weights.size), np.float32)
        entropy = 0.0
        for gradient, begin, end in zip(gradients, bounds, bounds[1:], strict=False):
            # Pieces begin anew in each group, so its gradient does not depend on those before it.
            for first in range(begin, end, _PIECE):
                piece = slice(first, min(first + _PIECE, end))
                entropy += self._add(packed, back, choices, piece, loss, gradient)
        return gradients, entropy / max(1, choices.num_rows)

    def _add(
        self,
        packed: Records,
        back: Records,
        choices: Choices,
        piece: slice,
        loss: PolicyLoss,
        gradient: Floats,
    ) -> float:
        """Adds the gradient of some rows; returns the sum of their entropies."""
        items, context, allowed = (array[piece] for array in choices.features)
        kept = (self._first, self._item, self._rows, self._entries)
        score_rows(packed, items, context, allowed, True, *kept, self._logits, self._pooled)
        entropy: float = _differentiate(
            self._logits,
            allowed,
            choices.actions[piece],
            choices.log_probabilities[piece],
            choices.advantages[piece],
            loss.ratio,
            loss.clip,
            loss.entropy_coefficient,
            choices.num_rows,
            self._slopes,
        )
        backward_rows(
            packed,
            back,
            items,
            context,
            allowed,
            *kept,
            self._slopes,
            self._no_slopes,
            self._block,
            gradient.view(self._weights),
        )
        return entropy


@njit(cache=True, nogil=True)
def _differentiate(
    logits: Floats,
    allowed: NDArray[np.bool_],
    actions: NDArray[np.int32],
    old: Floats,
    advantages: Floats,
    ratio: bool,
    clip: float,
    entropy_coefficient: float,
    num_rows: int,
    out: Floats,
) -> float:
    """Writes the gradient of a loss by the allowed logits of some of its rows.

    Args:
        logits: float32 ``(n or more, num_actions)``.
        allowed: bool ``(n, num_actions)``.
        actions: int32 ``(n,)``.
        old: float32 ``(n,)``, log-probabilities of the actions when they were chosen.
        advantages: float32 ``(n,)``.
        ratio: see `PolicyLoss`, as the next two.
        clip: as well.
        entropy_coefficient: as well.
        num_rows: of the loss, which is a mean over them.
        out: written, as `logits`.

    Returns:
        Sum over the rows of the entropy, in nats.
    """
    entropy = 0.0
    for i in range(actions.size):
        entropy += _differentiate_row(
            logits[i],
            allowed[i],
            actions[i],
            float(old[i]),
            float(advantages[i]),
            ratio,
            clip,
            entropy_coefficient,
            1.0 / num_rows,
            out[i],
        )
    return entropy


@njit(cache=True, nogil=True)
def _differentiate_row(
    logits: Floats,
    allowed: NDArray[np.bool_],
    action: int,
    old: float,
    advantage: float,
    ratio: bool,
    clip: float,
    entropy_coefficient: float,
    share: float,
    out: Floats,
) -> float:
    r"""Writes the gradient of a row's loss by its allowed logits; returns the row's entropy.

    With :math:`p` the softmax of the logits and :math:`H` its entropy, the logarithm of the
    probability of action a has the gradient :math:`1_{j=a} - p_j`, and the entropy
    :math:`-p_j (\log p_j + H)`.
    """
    largest = -np.inf
    for j in range(allowed.size):
        if allowed[j] and not logits[j] <= largest:  # not a number stays what it is
            largest = float(logits[j])
    total = 0.0
    for j in range(allowed.size):
        if allowed[j]:
            total += np.exp(float(logits[j]) - largest)
    rest = largest + np.log(total)
    entropy = 0.0
    for j in range(allowed.size):
        if allowed[j]:
            entropy -= np.exp(float(logits[j]) - rest) * (float(logits[j]) - rest)
    slope = advantage
    if ratio:
        quotient = np.exp(float(logits[action]) - rest - old)
        beyond = quotient > 1.0 + clip if slope > 0 else quotient < 1.0 - clip
        slope = 0.0 if beyond else slope * quotient
    for j in range(allowed.size):
        if allowed[j]:
            logarithm = float(logits[j]) - rest
            p = np.exp(logarithm)
            chosen = 1.0 if j == action else 0.0
            found = entropy_coefficient * p * (logarithm + entropy) - slope * (chosen - p)
            out[j] = share * found
    return entropy
