"""Gradients of policy losses by the slot scorer's weights, from features to gradient in one call.

What `differentiable_scores` and PyTorch compute together in five passes over a batch, is done here
for some rows at a time, which stay in a cache: scores, the loss of their softmax, and back. There
is no graph, so there are no derivatives of second order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rllib_configs.modules.slot_scorer_compiled import Rows
from rllib_configs.modules.slot_scorer_gradient import (
    BLOCK,
    backward_rows,
    block_type,
    transposed_type,
)
from rllib_configs.modules.slot_scorer_kernels import (
    Floats,
    Record,
    Records,
    entry_type,
    row_type,
    score_rows,
    weights_type,
)


@dataclass(frozen=True, eq=False)
class Choices:
    """Decisions and what the network sees of them, those of a group one after the other.

    Attributes:
        rows: what the network looks at; the chosen actions are allowed.
        actions: int32 ``(n,)``.
        log_probabilities: float32 ``(n,)``, of the actions when they were chosen.
        advantages: float32 ``(n,)``.
        bounds: int64 ``(num_groups + 1,)``, first row of each group, and n.
    """

    rows: Rows
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
        rows = self.rows
        arrays: Sequence[NDArray[Any]] = (rows.slots, rows.context, rows.allowed, self.actions)
        return sum(array.nbytes for array in (*arrays, self.log_probabilities, self.advantages))


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
    """Computes gradients for one network; it keeps what it needs to work, and nothing else.

    Args:
        context_size: features of the context.
        num_slots: of the cluster.
        slot_size: features of a slot.
        width: units of each hidden layer.
    """

    def __init__(self, context_size: int, num_slots: int, slot_size: int, width: int) -> None:
        self._weights = weights_type(context_size, slot_size, width)
        self._transposed = np.empty(1, transposed_type(width))
        self._first = np.empty(BLOCK + 1, np.int64)
        self._slot = np.empty(BLOCK * num_slots, np.int64)
        self._rows = np.empty(BLOCK, row_type(width))
        self._entries = np.empty(BLOCK * num_slots, entry_type(width))
        self._logits = np.empty((2, BLOCK, num_slots + 1), np.float32)  # and their gradient
        self._pooled = np.zeros((2, BLOCK, width), np.float32)
        self._block = np.empty(1, block_type(num_slots, slot_size, width))

    def __call__(
        self, weights: Floats, choices: Choices, loss: PolicyLoss
    ) -> tuple[Floats, float]:
        """Computes the gradient of each group's part of a loss.

        Args:
            weights: float32 ``(num_weights,)``, those of `pack` as one vector.
            choices: decisions of any number; the parts add up to the mean over all.
            loss: what of.

        Returns:
            Float32 ``(num_groups, num_weights)``, and the mean entropy, in nats.
        """
        gradient = np.zeros((choices.bounds.size - 1, weights.size), np.float32)
        entropy = _policy_gradient(
            weights.view(self._weights),
            choices.rows.slots,
            choices.rows.context,
            choices.rows.allowed,
            choices.actions,
            choices.log_probabilities,
            choices.advantages,
            choices.bounds,
            loss.ratio,
            loss.clip,
            loss.entropy_coefficient,
            self._transposed,
            self._first,
            self._slot,
            self._rows,
            self._entries,
            self._logits,
            self._pooled,
            self._block,
            gradient.reshape(-1).view(self._weights),
        )
        return gradient, entropy


@njit(cache=True, nogil=True)
def _policy_gradient(
    packed: Records,
    slots: Floats,
    context: Floats,
    allowed: NDArray[np.bool_],
    actions: NDArray[np.int32],
    old: Floats,
    advantages: Floats,
    bounds: NDArray[np.int64],
    ratio: bool,
    clip: float,
    entropy_coefficient: float,
    transposed: Records,
    first: NDArray[np.int64],
    slot: NDArray[np.int64],
    rows: Records,
    entries: Records,
    logits: Floats,
    pooled: Floats,
    block: Records,
    gradient: Records,
) -> float:
    """See `PolicyGradient`; `gradient`, one record a group, is added to."""
    _transpose(packed[0], transposed[0])
    entropy = 0.0
    n = actions.size
    for group in range(bounds.size - 1):
        for begin in range(bounds[group], bounds[group + 1], BLOCK):
            end = min(begin + BLOCK, bounds[group + 1])
            score_rows(
                packed,
                slots[begin:end],
                context[begin:end],
                allowed[begin:end],
                True,
                first,
                slot,
                rows,
                entries,
                logits[0],
                pooled[0],
            )
            for i in range(begin, end):
                entropy += _differentiate(
                    logits[0, i - begin],
                    allowed[i],
                    actions[i],
                    old[i],
                    advantages[i],
                    ratio,
                    clip,
                    entropy_coefficient,
                    1.0 / n,
                    logits[1, i - begin],
                )
            backward_rows(
                packed,
                transposed,
                slots[begin:end],
                context[begin:end],
                allowed[begin:end],
                first,
                slot,
                rows,
                entries,
                logits[1],
                pooled[1],
                block,
                gradient[group : group + 1],
            )
    return entropy / max(1, n)


@njit(cache=True, nogil=True)
def _transpose(weights: Record, out: Record) -> None:
    width = weights.void.shape[0]
    for j in range(width):
        for k in range(width):
            out.job_context[j, k] = weights.job_context[k, j]
            out.pooled_context[j, k] = weights.pooled_context[k, j]
            out.pooled_summed[j, k] = weights.pooled_summed[k, j]
            out.again[j, k] = weights.again[k, j]
            out.again_pooled[j, k] = weights.again_pooled[k, j]


@njit(cache=True, nogil=True)
def _differentiate(
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
    slope = float(advantage)
    if ratio:
        quotient = np.exp(float(logits[action]) - rest - float(old))
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
