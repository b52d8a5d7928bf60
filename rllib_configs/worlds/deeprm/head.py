"""The layer behind DeepRM's hidden units, whose sums have one order on every processor.

Libraries of linear algebra choose the order of a sum by the processor: by its vectors, and by the
sizes of its caches. A gradient sums over some 200,000 states, so that weights would differ in
their last digits from one processor to another, and after some iterations in all. Here states
are summed one after the other, in float64.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.compiled import njit

Matrix = NDArray[np.float32]


@njit(cache=True, nogil=True)
def rectified_linear(hidden: Matrix, weight: Matrix, bias: Matrix) -> Matrix:
    """``relu(hidden) @ weight + bias``.

    Args:
        hidden: float32 ``(rows, width)``.
        weight: float32 ``(width, actions)``.
        bias: float32 ``(actions,)``.

    Returns:
        float32 ``(rows, actions)``.
    """
    rows, width = hidden.shape
    actions = weight.shape[1]
    out = np.empty((rows, actions), np.float32)
    for row in range(rows):
        for action in range(actions):
            out[row, action] = bias[action]
        for unit in range(width):
            if hidden[row, unit] > 0:
                for action in range(actions):
                    out[row, action] += hidden[row, unit] * weight[unit, action]
    return out


@njit(cache=True, nogil=True)
def _gradients(
    hidden: Matrix, weight: Matrix, gradient: Matrix
) -> tuple[Matrix, NDArray[np.float64], NDArray[np.float64]]:
    """Gradients of the hidden units, the weight and the bias."""
    rows, width = hidden.shape
    actions = weight.shape[1]
    of_hidden = np.zeros((rows, width), np.float32)
    of_weight = np.zeros((width, actions))
    of_bias = np.zeros(actions)
    for row in range(rows):
        for action in range(actions):
            of_bias[action] += gradient[row, action]
        for unit in range(width):
            if hidden[row, unit] > 0:
                total = np.float32(0.0)
                for action in range(actions):
                    total += gradient[row, action] * weight[unit, action]
                    of_weight[unit, action] += np.float64(hidden[row, unit]) * gradient[row, action]
                of_hidden[row, unit] = total
    return of_hidden, of_weight, of_bias


class RectifiedLinear(torch.autograd.Function):
    """`rectified_linear` with first derivatives."""

    @staticmethod
    def forward(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Computes the layer; see `rectified_linear`."""
        return torch.from_numpy(
            rectified_linear(*(each.detach().numpy() for each in (hidden, weight, bias)))
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keeps what `backward` needs."""
        hidden, weight, _ = inputs
        ctx.save_for_backward(hidden, weight)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of hidden units, weight and bias."""
        hidden, weight = (each.detach().numpy() for each in ctx.saved_tensors)
        found = _gradients(hidden, weight, gradient.contiguous().numpy())
        return tuple(torch.from_numpy(each.astype(np.float32, copy=False)) for each in found)
