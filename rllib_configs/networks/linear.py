"""A dense layer whose sums have the same order on every processor.

Libraries of linear algebra choose the order of a sum by the processor: by its vectors and by the
sizes of its caches. A gradient sums over some 200,000 states, so that weights differ in their last
digits from one processor to another, and after some iterations in all. Here each sum takes its
terms one after the other; those over states in float64.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.compiled import njit

Matrix = NDArray[np.float32]


@njit(cache=True, nogil=True)
def linear(inputs: Matrix, weight: Matrix, bias: Matrix) -> Matrix:
    """``inputs @ weight + bias``; inputs that are 0 cost nothing.

    Args:
        inputs: float32 ``(rows, width)``.
        weight: float32 ``(width, outputs)``.
        bias: float32 ``(outputs,)``.

    Returns:
        float32 ``(rows, outputs)``.
    """
    rows, width = inputs.shape
    outputs = weight.shape[1]
    found = np.empty((rows, outputs), np.float32)
    for row in range(rows):
        for output in range(outputs):
            found[row, output] = bias[output]
        for unit in range(width):
            given = inputs[row, unit]
            if given != 0:
                for output in range(outputs):
                    found[row, output] += given * weight[unit, output]
    return found


@njit(cache=True, nogil=True)
def products(left: Matrix, right: Matrix) -> NDArray[np.float64]:
    """``left.T @ right``, a sum over rows in their order.

    Args:
        left: float32 ``(rows, n)``.
        right: float32 ``(rows, m)``.

    Returns:
        float64 ``(n, m)``.
    """
    found = np.zeros((left.shape[1], right.shape[1]))
    for row in range(left.shape[0]):
        for i in range(found.shape[0]):
            given = np.float64(left[row, i])
            if given != 0:
                for j in range(found.shape[1]):
                    found[i, j] += given * right[row, j]
    return found


@njit(cache=True, nogil=True)
def _gradients(
    inputs: Matrix, turned: Matrix, gradient: Matrix
) -> tuple[Matrix, NDArray[np.float64], NDArray[np.float64]]:
    """Gradients of inputs, weight and bias; ``turned`` is the transposed weight."""
    rows, width = inputs.shape
    outputs = turned.shape[0]
    of_inputs = np.zeros((rows, width), np.float32)
    of_weight = np.zeros((width, outputs))
    of_bias = np.zeros(outputs)
    for row in range(rows):
        for output in range(outputs):
            wanted = gradient[row, output]
            of_bias[output] += wanted
            for unit in range(width):
                of_inputs[row, unit] += wanted * turned[output, unit]
        for unit in range(width):
            given = np.float64(inputs[row, unit])
            if given != 0:
                for output in range(outputs):
                    of_weight[unit, output] += given * gradient[row, output]
    return of_inputs, of_weight, of_bias


class Linear(torch.autograd.Function):
    """`linear` for PyTorch, with first derivatives."""

    @staticmethod
    def forward(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Computes the layer; see `linear`."""
        return torch.from_numpy(linear(*map(_array, (inputs, weight, bias))))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keeps what `backward` needs."""
        given, weight, _ = inputs
        ctx.save_for_backward(given, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of inputs, weight and bias."""
        inputs, weight = ctx.saved_tensors
        found = _gradients(_array(inputs), _array(weight.t()), _array(gradient))
        return tuple(torch.from_numpy(each.astype(np.float32, copy=False)) for each in found)


def _array(tensor: torch.Tensor) -> Matrix:
    return np.ascontiguousarray(tensor.detach().numpy())
