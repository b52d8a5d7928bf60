"""A first layer on a unary image, by look-ups in prefix sums of its weights.

DeepRM's image consists of blocks whose rows are filled from the left, so the product of a row
with a dense weight is a prefix sum of the weight: 61 look-ups of a hidden vector do the work of
4,460 multiplications with it, and give the same numbers up to rounding.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from rllib_configs.worlds.deeprm.lookups import LookupLayout


@njit(cache=True, nogil=True)
def _sum_rows(
    table: NDArray[np.float32],
    bias: NDArray[np.float32],
    lookups: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    width = table.shape[1]
    for row in range(lookups.shape[0]):
        for unit in range(width):
            out[row, unit] = bias[unit]
        for k in range(lookups.shape[1]):
            entry = lookups[row, k]
            for unit in range(width):
                out[row, unit] += table[entry, unit]


@njit(cache=True, nogil=True)
def _scatter_rows(
    lookups: NDArray[np.int32], gradient: NDArray[np.float32], num_entries: int
) -> NDArray[np.float32]:
    """Adds each row of the gradient to the entries that it looked up, in the order of the rows.

    One thread: runners have a core each, and the rows of a unit are theirs alone.
    """
    rows, width = gradient.shape
    total = np.zeros((num_entries, width), np.float32)
    for row in range(rows):
        for k in range(lookups.shape[1]):
            entry = lookups[row, k]
            for unit in range(width):
                total[entry, unit] += gradient[row, unit]
    return total


def lookup_sum(
    table: NDArray[np.float32], bias: NDArray[np.float32], lookups: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Sums the looked-up entries of each row, and the bias.

    Args:
        table: float32 ``(num_entries, width)``.
        bias: float32 ``(width,)``.
        lookups: int32 ``(rows, num_lookups)``.

    Returns:
        float32 ``(rows, width)``.
    """
    out = np.empty((lookups.shape[0], table.shape[1]), np.float32)
    _sum_rows(table, bias, lookups, out)
    return out


class LookupLinear(torch.autograd.Function):
    """``image(codes) @ weight + bias`` without the image."""

    @staticmethod
    def forward(
        weight: torch.Tensor, bias: torch.Tensor, lookups: torch.Tensor, layout: LookupLayout
    ) -> torch.Tensor:
        """Computes the layer.

        Args:
            weight: float32 ``(image_size, width)``.
            bias: float32 ``(width,)``.
            lookups: int32 ``(rows, num_lookups)``, from `LookupLayout.lookups`.
            layout: where the entries stand for which cells of the image.

        Returns:
            float32 ``(rows, width)``.
        """
        table = layout.prefix_table(weight.detach().numpy())
        return torch.from_numpy(lookup_sum(table, bias.detach().numpy(), lookups.numpy()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keeps what `backward` needs."""
        _, _, lookups, layout = inputs
        ctx.save_for_backward(lookups)
        ctx.layout = layout

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of weight and bias."""
        (lookups,) = ctx.saved_tensors
        layout: LookupLayout = ctx.layout
        scattered = _scatter_rows(
            lookups.numpy(), gradient.contiguous().numpy(), layout.num_entries
        )
        return (
            torch.from_numpy(layout.spread_table_gradient(scattered)),
            gradient.sum(0),
            None,
            None,
        )
