"""Gradients of policy losses by the set scorer's weights, without PyTorch.

What `SetScorer` and PyTorch compute together in many passes over a batch is done here
for some rows at a time, which stay in a cache: scores, the loss of their softmax, and back. There
is no graph, so there are no derivatives of second order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.world import Features, State, World
from rllib_configs.networks.set_scorer.gradient import (
    BLOCK,
    backward_rows,
    block_type,
    transposed,
)
from rllib_configs.networks.set_scorer.kernels import (
    PARAMETERS,
    Floats,
    Kept,
    pack,
    score_rows,
    weights_type,
)
from rllib_configs.networks.set_scorer.network import SetScorer

_PIECE = 4 * BLOCK  # rows; what is kept of them on the way fits a cache


@dataclass(frozen=True, eq=False)
class Choices:
    """Decisions and what the network sees of them, those of a group one after the other.

    Attributes:
        features: what the network sees; the chosen actions are allowed. Of a network that sees
            states as they are, the states, ``(n, state_size)``.
        actions: int32 ``(n,)``.
        log_probabilities: float32 ``(n,)``, of the actions when they were chosen.
        advantages: float32 ``(n,)``.
        bounds: int64 ``(num_groups + 1,)``, first row of each group, and n.
    """

    features: Features | State
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
        seen = self.features if isinstance(self.features, tuple) else (self.features,)
        arrays: Sequence[NDArray[Any]] = (*seen, self.actions, self.advantages)
        return sum(array.nbytes for array in (*arrays, self.log_probabilities))


class PolicyLoss(NamedTuple):
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
        self._kept = Kept.room(_PIECE, num_items, width)
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
        (items, context, allowed), bounds = choices.features, choices.bounds.tolist()
        gradients = np.zeros((len(bounds) - 1, weights.size), np.float32)
        entropy = 0.0
        for gradient, begin, end in zip(gradients, bounds, bounds[1:], strict=False):
            total = gradient.view(self._weights)
            # Pieces begin anew in each group, so its gradient does not depend on those before it.
            for first in range(begin, end, _PIECE):
                piece = slice(first, min(first + _PIECE, end))
                features = Features(items[piece], context[piece], allowed[piece])
                score_rows(packed, features, self._kept, True, self._logits, self._pooled)
                entropy += differentiate(
                    self._logits,
                    features.allowed,
                    choices.actions[piece],
                    choices.log_probabilities[piece],
                    choices.advantages[piece],
                    loss,
                    choices.num_rows,
                    self._slopes,
                )
                slopes = self._slopes, self._no_slopes
                backward_rows(packed, back, features, self._kept, *slopes, self._block, total)
        return gradients, entropy / max(1, choices.num_rows)


class UnitGradient:
    """The gradient of PPO's loss, on rows that stay where they are; see `PolicyGradient`.

    A critic's part is not computed.

    Args:
        network: tells the shapes; its own parameters are not used.
        world: tells the features of states.
    """

    def __init__(self, network: SetScorer, world: World) -> None:
        self._network, self._world = network, world
        width, context_size = network.context.weight.shape
        item_size = network.job.weight.shape[1]
        self._gradient = PolicyGradient(context_size, world.num_actions - 1, item_size, width)
        self._places = _places(network)
        # Of a skip connection that is not there; it stays 0.
        self._unused = 0 if network.skip_names else item_size
        self._weights: Floats

    def set_parameters(self, parameters: Floats) -> None:
        """Takes the network's parameters, float32 ``(num_learned,)``, in its own order."""
        self._weights = np.zeros(self._places.size + self._unused, np.float32)
        self._weights[self._places] = parameters

    def show(self, states: State) -> Features:
        """What the network sees of states, which does not change with its parameters."""
        return self._network.shown(self._world.features(states))

    def __call__(self, choices: Choices, loss: PolicyLoss) -> tuple[Floats, float]:
        """Differentiates the mean of a loss over choices of one group.

        Returns:
            Float32 ``(num_learned,)``, in the network's order, and the mean entropy in nats.
        """
        found, entropy = self._gradient(self._weights, choices, loss)
        gradient: Floats = found[0][self._places]
        return gradient, entropy


def _places(network: SetScorer) -> NDArray[np.int64]:
    """Where compiled code has each parameter of a network, int64 ``(num_learned,)``."""
    numbered: dict[str, Floats] = {}
    first = 1  # 0 marks what no parameter fills
    for name, parameter in network.named_parameters():
        numbers = np.arange(first, first + parameter.numel(), dtype=np.float32)
        numbered[name] = numbers.reshape(tuple(parameter.shape))
        first += parameter.numel()
    if first > 1 << 24:
        raise ValueError("a network of more than 16 million parameters is not for this")
    skip = [numbered[name] for name in network.skip_names]
    arrays = [*(numbered[name] for name in PARAMETERS), *([np.concatenate(skip)] if skip else [])]
    packed = pack(arrays).view(np.float32).reshape(-1)
    filled = np.flatnonzero(packed)
    places = np.empty(first - 1, np.int64)
    places[packed[filled].astype(np.int64) - 1] = filled
    return places


@njit(cache=True, nogil=True)
def differentiate(
    logits: Floats,
    allowed: NDArray[np.bool_],
    actions: NDArray[np.int32],
    old: Floats,
    advantages: Floats,
    loss: PolicyLoss,
    num_rows: int,
    out: Floats,
) -> float:
    r"""Writes the gradient of a loss by the allowed logits of some of its rows.

    With :math:`p` the softmax of the logits and :math:`H` its entropy, the logarithm of the
    probability of action a has the gradient :math:`1_{j=a} - p_j`, and the entropy
    :math:`-p_j (\log p_j + H)`.

    Args:
        logits: float32 ``(n or more, num_actions)``.
        allowed: bool ``(n, num_actions)``.
        actions: int32 ``(n,)``.
        old: float32 ``(n,)``, log-probabilities of the actions when they were chosen.
        advantages: float32 ``(n,)``.
        loss: what of.
        num_rows: of the loss, which is a mean over them.
        out: written, as `logits`.

    Returns:
        Sum over the rows of the entropy, in nats.
    """
    sum_of_entropies, share = 0.0, 1.0 / num_rows
    for i in range(actions.size):
        largest = -np.inf
        for j in range(allowed.shape[1]):
            if allowed[i, j] and not logits[i, j] <= largest:  # not a number stays what it is
                largest = float(logits[i, j])
        total = 0.0
        for j in range(allowed.shape[1]):
            if allowed[i, j]:
                total += np.exp(float(logits[i, j]) - largest)
        rest = largest + np.log(total)  # logarithms of probabilities are logits less this
        entropy = 0.0
        for j in range(allowed.shape[1]):
            if allowed[i, j]:
                logarithm = float(logits[i, j]) - rest
                entropy -= np.exp(logarithm) * logarithm
        clip, slope = loss.clip, float(advantages[i])
        if loss.ratio:
            quotient = np.exp(float(logits[i, actions[i]]) - rest - float(old[i]))
            beyond = quotient > 1.0 + clip if slope > 0 else quotient < 1.0 - clip
            slope = 0.0 if beyond else slope * quotient  # beyond, the gain stands still
        for j in range(allowed.shape[1]):
            if allowed[i, j]:
                logarithm = float(logits[i, j]) - rest
                p = np.exp(logarithm)
                chosen = 1.0 if j == actions[i] else 0.0
                bonus = loss.entropy_coefficient * p * (logarithm + entropy)
                out[i, j] = share * (bonus - slope * (chosen - p))
        sum_of_entropies += entropy
    return sum_of_entropies
