"""Scores that are products of an item's features and those of the state, in PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.policy import NOT_ALLOWED
from cluster_env.core.world import Features, State
from rllib_configs.networks.sampling import TensorForm


def bilinear_scores(
    items: torch.Tensor,
    context: torch.Tensor,
    allowed: torch.Tensor,
    of_item: torch.Tensor,
    of_void: torch.Tensor,
) -> torch.Tensor:
    """Logits, float32 ``(n, num_items + 1)``, those of void last.

    Args:
        items: float32 ``(n, num_items, item_size)``.
        context: float32 ``(n, context_size)``.
        allowed: bool ``(n, num_items + 1)``; what is not has `NOT_ALLOWED`.
        of_item: weights, float32 ``(item_size, context_size)``.
        of_void: weights of void, float32 ``(context_size,)``.
    """
    weights = context @ of_item.T  # of the features of items, (n, item_size)
    scores = torch.einsum("ijf,if->ij", items, weights)
    scores = torch.cat([scores, (context @ of_void)[:, None]], dim=1)
    return scores.masked_fill(~allowed, float(NOT_ALLOWED))


def bilinear_form(
    of_item: NDArray[np.floating[Any]],
    of_void: NDArray[np.floating[Any]],
    observe: Callable[[State], Features],
    names: tuple[tuple[str, ...], tuple[str, ...]],
) -> TensorForm:
    """A scorer with the weights of `bilinear_scores` as a `TensorForm`.

    Args:
        of_item: see there.
        of_void: see there.
        observe: from states to what it is called with.
        names: of an item's features, and of the context's.
    """
    inputs = {
        "items": torch.zeros(2, 3, of_item.shape[0]),
        "context": torch.zeros(2, of_item.shape[1]),
        "allowed": torch.ones(2, 4, dtype=torch.bool),
    }
    any_size = {"items": (0, 1), "context": (0,), "allowed": (0, 1)}
    module = _Bilinear(torch.from_numpy(of_item), torch.from_numpy(of_void))
    features = {"items": names[0], "context": names[1]}
    return TensorForm(module, inputs, any_size, lambda states: observe(states)._asdict(), features)


class _Bilinear(nn.Module):
    """Sums in float64, as compiled scorers do: scores of 60 keep five digits after the point."""

    of_item: torch.Tensor
    of_void: torch.Tensor

    def __init__(self, of_item: torch.Tensor, of_void: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("of_item", of_item.double())
        self.register_buffer("of_void", of_void.double())

    def forward(
        self, items: torch.Tensor, context: torch.Tensor, allowed: torch.Tensor
    ) -> torch.Tensor:
        scores = bilinear_scores(
            items.double(), context.double(), allowed, self.of_item, self.of_void
        )
        return scores.float()
