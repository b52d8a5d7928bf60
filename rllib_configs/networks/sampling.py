"""What a trained network offers to runners and evaluation: logits and draws, without gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.world import State

if TYPE_CHECKING:
    import torch

Draws = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Actions and their log-probabilities, ``(n,)``. Actions of a world whose agents do several
things at once may be ``(n, num_actions)``."""


@dataclass(frozen=True)
class TensorForm:
    """A network for programs that have PyTorch alone, or a file that can be exported from it.

    Attributes:
        module: from tensors to logits.
        inputs: what it is called with, by name: examples of two rows.
        any_size: axes of each that may have any size.
        observe: from states, ``(n, state_size)``, to what it is called with, by name.
        features: names of the last axis of inputs, where it has some.
    """

    module: Any
    inputs: "Mapping[str, torch.Tensor]"
    any_size: Mapping[str, tuple[int, ...]]
    observe: Callable[[State], Mapping[str, NDArray[Any]]]
    features: Mapping[str, tuple[str, ...]]


class SamplingPolicy(Protocol):
    """Chooses actions and says how likely they were."""

    def sample(self, states: State, uniforms: NDArray[np.float64]) -> Draws:
        """Decides in states, ``(n, state_size)``, by numbers in [0, 1), float64 ``(n,)``."""


class Sampler(SamplingPolicy, Protocol):
    """A snapshot of a network's weights that computes without RLlib.

    One whose actions are rows, of several things that are done at once, has a method ``likeliest``
    beside, from states and what is added to the logit of void to such rows, without drawing.

    One whose attribute ``by_row`` is true comes to the same bits for a state whatever states are
    beside it, which products of matrices do not. One that can be exported has a method
    ``tensor_form`` that gives its `TensorForm`.
    """

    def logits(self, states: State) -> NDArray[np.float32]:
        """Logits, float32 ``(n, num_actions)``, of states, ``(n, state_size)``."""

    def sample(self, states: State, uniforms: NDArray[np.float64]) -> Draws:
        """Draws from the softmax of the logits."""
        return sample_actions(self.logits(states), uniforms)


class ValuingSampler(Sampler, Protocol):
    """One of a network with a critic."""

    def values(self, states: State) -> NDArray[np.float64]:
        """Values of states, float64 ``(n,)``."""


@njit(cache=True, nogil=True)
def sample_actions(logits: NDArray[np.float32], uniforms: NDArray[np.float64]) -> Draws:
    """Draws from the softmax of each row by its inverse distribution function.

    Args:
        logits: float32 ``(n, actions)``.
        uniforms: float64 ``(n,)`` in [0, 1).

    Returns:
        Actions, int32 ``(n,)``, and their log-probabilities, float32 ``(n,)``.
    """
    rows, actions = logits.shape
    chosen = np.empty(rows, np.int32)
    log_probabilities = np.empty(rows, np.float32)
    weights = np.empty(actions)
    for row in range(rows):
        largest = logits[row].max()
        total = 0.0
        for action in range(actions):
            weights[action] = np.exp(np.float64(logits[row, action] - largest))
            total += weights[action]
        target = uniforms[row] * total
        action = 0
        below = weights[0]
        while below <= target and action < actions - 1:
            action += 1
            below += weights[action]
        chosen[row] = action
        log_probabilities[row] = np.log(weights[action] / total)
    return chosen, log_probabilities
