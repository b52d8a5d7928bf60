"""The compiled set scorer as PyTorch and NumPy see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.world import Features
from rllib_configs.networks.set_scorer.gradient import backward_rows, block_type, transposed_type
from rllib_configs.networks.set_scorer.kernels import (
    Floats,
    Records,
    entry_type,
    row_type,
    score_rows,
    weights_type,
)

FORBIDDEN = -1e9  # finite, so that a row with nothing allowed gives no NaN
PARAMETERS = (
    "context.weight",
    "context.bias",
    "job.weight",
    "job.bias",
    "job_context.weight",
    "pooled.weight",
    "pooled.bias",
    "mix.weight",
    "mix.bias",
    "mix_pooled.weight",
    "score.weight",
    "score.bias",
    "void.weight",
    "void.bias",
)
"""Parameters that every network has, in the order that this module takes them. One more may follow:
the vector of the skip connection from an item's features to its score, 0 if it is left out."""

_SPLIT = PARAMETERS.index("pooled.weight")  # its inputs are the context and the sum over jobs

_SECOND_ORDER = (
    "the compiled set scorer has first derivatives only; set compiled = False on the SetScorer "
    "to differentiate its gradient"
)


def pack(parameters: Sequence[Floats]) -> Records:
    """Copies parameters to where compiled code finds them.

    Args:
        parameters: float32 arrays, see `PARAMETERS`, as PyTorch has them.

    Returns:
        `weights_type` ``(1,)``.
    """
    width, context_size = parameters[0].shape
    return _pack(parameters, weights_type(context_size, parameters[2].shape[1], width))


def scores(packed: Records, features: Features) -> tuple[Floats, Floats]:
    """Computes logits.

    Args:
        packed: see `pack`.
        features: of n states; no row of the results depends on the others in any bit.

    Returns:
        Logits, float32 ``(n, num_items + 1)``, `FORBIDDEN` where they are not allowed, and the
        pooled vectors, float32 ``(n, width)``.
    """
    return _scores(packed, features, None)


def differentiable_scores(
    parameters: Sequence[torch.Tensor], features: Features
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `scores`, with a gradient, but none of second order.

    Args:
        parameters: float32 tensors, see `PARAMETERS`; they may be results of a computation
            themselves.
        features: see `scores`.
    """
    if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
        logits, pooled = _Scores.apply(_Call(features), *parameters)
        return logits, pooled
    packed = pack([parameter.detach().numpy() for parameter in parameters])
    found = scores(packed, features)
    return torch.from_numpy(found[0]), torch.from_numpy(found[1])


@dataclass(frozen=True, eq=False)
class _Kept:
    """What `score_rows` found out on its way, or room for one row of it; see there."""

    first: NDArray[np.int64]
    item: NDArray[np.int64]
    rows: Records
    entries: Records

    @staticmethod
    def of(num_rows: int, num_items: int, width: int) -> "_Kept":
        return _Kept(
            np.empty(num_rows + 1, np.int64),
            np.empty(num_rows * num_items, np.int64),
            np.empty(num_rows, row_type(width)),
            np.empty(num_rows * num_items, entry_type(width)),
        )


class _Call:
    """One pass through the network, on its way from `_Scores.forward` to its backward."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.num_parameters = 0
        self.packed: Records
        self.transposed: Records
        self.kept: _Kept

    def forward(self, parameters: Sequence[Floats]) -> tuple[Floats, Floats]:
        """See `scores`; keeps what `gradient` needs."""
        self.num_parameters = len(parameters)
        self.packed = pack(parameters)
        num_rows, num_items, _ = self.features.items.shape
        width = parameters[0].shape[0]
        self.transposed = transposed(self.packed)
        self.kept = _Kept.of(num_rows, num_items, width)
        return _scores(self.packed, self.features, self.kept)

    def gradient(self, logits: Floats | None, pooled: Floats | None) -> list[Floats]:
        """The gradient of each parameter, from those of both results; None is 0."""
        features, kept = self.features, self.kept
        num_rows, num_items, item_size = features.items.shape
        width = self.transposed["mix"].shape[1]
        gradient = np.zeros(1, self.packed.dtype)
        backward_rows(
            self.packed,
            self.transposed,
            *features,
            kept.first,
            kept.item,
            kept.rows,
            kept.entries,
            np.zeros((num_rows, num_items + 1), np.float32) if logits is None else logits,
            np.zeros((num_rows, width), np.float32) if pooled is None else pooled,
            np.empty(1, block_type(num_items, item_size, width)),
            gradient,
        )
        return unpack(gradient)[: self.num_parameters]


class _Scores(torch.autograd.Function):
    """`scores` with its gradient."""

    @staticmethod
    def forward(call: _Call, *parameters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, pooled = call.forward([parameter.detach().numpy() for parameter in parameters])
        return torch.from_numpy(logits), torch.from_numpy(pooled)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.call = inputs[0]
        ctx.save_for_backward(*inputs[1:])  # refuses a backward pass after they have changed
        ctx.set_materialize_grads(False)  # without a critic, the pooled vector has no gradient

    @staticmethod
    def backward(
        ctx: Any, logits: torch.Tensor | None, pooled: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        # A function of its own, so that whoever asks for a second derivative is told that there is
        # none: PyTorch would take the result for a constant, and give a wrong one silently.
        return None, *_Gradient.apply(ctx.call, logits, pooled, *ctx.saved_tensors)


class _Gradient(torch.autograd.Function):
    """The gradient by the parameters, which depends on everything, but has no gradient itself."""

    @staticmethod
    def forward(
        call: _Call,
        logits: torch.Tensor | None,
        pooled: torch.Tensor | None,
        *parameters: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        given = [None if g is None else g.detach().contiguous().numpy() for g in (logits, pooled)]
        return tuple(torch.from_numpy(part) for part in call.gradient(*given))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise RuntimeError(_SECOND_ORDER)


def _scores(packed: Records, features: Features, kept: _Kept | None) -> tuple[Floats, Floats]:
    num_rows, num_items, _ = features.items.shape
    width = packed["void"].shape[1]
    logits = np.full((num_rows, num_items + 1), FORBIDDEN, np.float32)
    pooled = np.empty((num_rows, width), np.float32)
    room = _Kept.of(1, num_items, width) if kept is None else kept
    score_rows(
        packed,
        *features,
        kept is not None,
        room.first,
        room.item,
        room.rows,
        room.entries,
        logits,
        pooled,
    )
    return logits, pooled


def _pack(parameters: Sequence[Floats], kind: np.dtype[np.void]) -> Records:
    width = parameters[0].shape[0]
    context, summed = parameters[_SPLIT][:, :width], parameters[_SPLIT][:, width:]
    parts = [*parameters[:_SPLIT], context, summed, *parameters[_SPLIT + 1 :]]
    packed = np.zeros(1, kind)
    for name, part in zip(kind.names or (), parts, strict=False):
        packed[name][0] = part.T if packed[name].ndim == 3 else part.reshape(-1)
    return packed


def transposed(packed: Records) -> Records:
    """The matrices that gradients are sent back through, `transposed_type` ``(1,)``."""
    found = np.empty(1, transposed_type(packed["void"].shape[1]))
    for name in found.dtype.names or ():
        found[name][0] = packed[name][0].T
    return found


def unpack(packed: Records) -> list[Floats]:
    """All of `PARAMETERS`, then the vector of the skip connection, in their shapes.

    Views, as far as possible.
    """
    heads = ("score", "void")
    parts = [(name, packed[name][0]) for name in packed.dtype.names or ()]
    found = [part[None] if name in heads else part.T for name, part in parts]
    found[_SPLIT : _SPLIT + 2] = [np.concatenate(found[_SPLIT : _SPLIT + 2], axis=1)]
    return found
