"""The set scorer's forward and backward pass, compiled, one row after the other.

A row's results never depend on the rows beside it, and every sum has a fixed order, so the same
weights give the same bits however a batch is cut. Places without an item, more than half
of them, cost nothing.

Weights and whatever is computed from them are fields of structured arrays, whose shapes are part of
their types: the compiler knows the width of each layer, and keeps a sum over its inputs in vector
registers.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.world import Features
from rllib_configs.networks import numba_names

numba_names.install()  # what follows is compiled for one width and cached beside others

Floats = NDArray[np.float32]
Records = NDArray[Any]  # structured
Record = Any  # an element of such an array

ORDERED = {"contract"}  # multiply-add in one instruction; sums keep their order

SKIP_GAIN = np.float32(10)
"""What weights of the skip connection are multiplied by, so that a
gradient step moves them as far as it matters."""

FORBIDDEN = -1e9  # finite, so that a row with nothing allowed gives no NaN
PARAMETERS = (
    *("context.weight", "context.bias", "job.weight", "job.bias", "job_context.weight"),
    *("pooled.weight", "pooled.bias", "mix.weight", "mix.bias", "mix_pooled.weight"),
    *("score.weight", "score.bias", "void.weight", "void.bias"),
)
"""Parameters that every network has, in the order that this module takes them. One more may follow:
the vector of the skip connection from an item's features to its score, 0 if it is left out."""

_SPLIT = PARAMETERS.index("pooled.weight")  # its inputs are the context and the sum over jobs


@cache
def weights_type(context_size: int, item_size: int, width: int) -> np.dtype[np.void]:
    """Type of all weights, or of their gradient: matrices are ``(inputs, outputs)``.

    The fields are the layers of `rllib_configs.networks.set_scorer.network.SetScorer`; the inputs
    of ``pooled`` are split into the context and the sum over jobs, because the shape of a slice
    would be no part of its type.

    Args:
        context_size: features of the context.
        item_size: features of an item.
        width: units of each hidden layer.
    """
    shapes = {
        "context": (context_size, width),
        "context_bias": (width,),
        "job": (item_size, width),
        "job_bias": (width,),
        "job_context": (width, width),
        "pooled_context": (width, width),
        "pooled_summed": (width, width),
        "pooled_bias": (width,),
        "mix": (width, width),
        "mix_bias": (width,),
        "mix_pooled": (width, width),
        "score": (width,),
        "score_bias": (1,),
        "void": (width,),
        "void_bias": (1,),
        "skip": (item_size,),
    }
    return np.dtype([(name, np.float32, shape) for name, shape in shapes.items()])


@cache
def row_type(width: int) -> np.dtype[np.void]:
    """Type of what `score_rows` finds out about a row."""
    names = ("context", "summed", "pooled", "shared")
    return np.dtype([(name, np.float32, (width,)) for name in names])


@cache
def entry_type(width: int) -> np.dtype[np.void]:
    """Type of what `score_rows` finds out about an entry: an item, or another choice.

    ``job`` is the item in its context; ``mix``, undefined unless it may be chosen, knows of all
    other items too.
    """
    return np.dtype([("job", np.float32, (width,)), ("mix", np.float32, (width,))])


class Kept(NamedTuple):
    """What `score_rows` finds out on its way: of all rows, or room for one of them."""

    first: NDArray[np.int64]  # (n + 1,), index of each row's first entry; or (2,)
    item: NDArray[np.int64]  # (n * num_items,), each entry's item; or (num_items,)
    rows: Records  # `row_type` (n,) or (1,)
    entries: Records  # `entry_type` (n * num_items,) or (num_items,)

    @staticmethod
    def room(num_rows: int, num_items: int, width: int) -> "Kept":
        """Room for rows of so many items."""
        return Kept(
            np.empty(num_rows + 1, np.int64),
            np.empty(num_rows * num_items, np.int64),
            np.empty(num_rows, row_type(width)),
            np.empty(num_rows * num_items, entry_type(width)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Room travels empty: what comes out of Ray's object store cannot be written."""
        num_rows = self.rows.size
        num_items = self.item.size // max(num_rows, 1)
        return Kept.room, (num_rows, num_items, self.rows["context"].shape[1])


def pack(parameters: Sequence[Floats]) -> Records:
    """Copies parameters to where compiled code finds them.

    Args:
        parameters: float32 arrays, see `PARAMETERS`, as PyTorch has them.

    Returns:
        `weights_type` ``(1,)``.
    """
    width, context_size = parameters[0].shape
    context, summed = parameters[_SPLIT][:, :width], parameters[_SPLIT][:, width:]
    parts = [*parameters[:_SPLIT], context, summed, *parameters[_SPLIT + 1 :]]
    packed = np.zeros(1, weights_type(context_size, parameters[2].shape[1], width))
    for name, part in zip(packed.dtype.names or (), parts, strict=False):
        packed[name][0] = part.T if packed[name].ndim == 3 else part.reshape(-1)
    return packed


def unpack(packed: Records) -> list[Floats]:
    """All of `PARAMETERS`, then the vector of the skip connection, in their shapes.

    Views, as far as possible.
    """
    heads = ("score", "void")
    parts = [(name, packed[name][0]) for name in packed.dtype.names or ()]
    found = [part[None] if name in heads else part.T for name, part in parts]
    found[_SPLIT : _SPLIT + 2] = [np.concatenate(found[_SPLIT : _SPLIT + 2], axis=1)]
    return found


def scores(packed: Records, features: Features, kept: Kept | None = None) -> tuple[Floats, Floats]:
    """Computes logits.

    Args:
        packed: see `pack`.
        features: of n states; no row of the results depends on the others in any bit.
        kept: written, for `backward_rows`; unset: nothing is kept.

    Returns:
        Logits, float32 ``(n, num_items + 1)``, `FORBIDDEN` where they are not allowed, and the
        pooled vectors, float32 ``(n, width)``.
    """
    num_rows, num_items, _ = features.items.shape
    width = packed["void"].shape[1]
    logits = np.full((num_rows, num_items + 1), FORBIDDEN, np.float32)
    pooled = np.empty((num_rows, width), np.float32)
    room = Kept.room(1, num_items, width) if kept is None else kept
    score_rows(packed, features, room, kept is not None, logits, pooled)
    return logits, pooled


@njit(cache=True, nogil=True)
def copy(x: Floats, out: Floats) -> None:
    """``out[:] = x``, which the compiler does not see through when it is written so."""
    for j in range(out.shape[0]):
        out[j] = x[j]


@njit(cache=True, nogil=True)
def clear(out: Floats) -> None:
    """``out[:] = 0``."""
    for j in range(out.shape[0]):
        out[j] = np.float32(0)


@njit(cache=True, nogil=True, fastmath=ORDERED)
def add_product(x: Floats, weight: Floats, out: Floats) -> None:
    """``out += x @ weight``."""
    # The sum runs outside: outputs are independent of each other, so the inner loop becomes vector
    # instructions, while each output adds up over k in one order that the compiler must keep.
    for k in range(weight.shape[0]):
        for j in range(weight.shape[1]):
            out[j] += x[k] * weight[k, j]


@njit(cache=True, nogil=True, fastmath=ORDERED)
def _dot(x: Floats, y: Floats) -> np.float32:
    """``x @ y``; four sums at once, in an order that the compiler does not choose."""
    # One sum would wait for itself at each addition, and the compiler may not split it, because
    # that would reorder it; four by hand run side by side, and always add up in the same way.
    a = b = c = d = np.float32(0)
    rest = y.shape[0] % 4
    for j in range(0, y.shape[0] - rest, 4):
        a += x[j] * y[j]
        b += x[j + 1] * y[j + 1]
        c += x[j + 2] * y[j + 2]
        d += x[j + 3] * y[j + 3]
    for j in range(y.shape[0] - rest, y.shape[0]):
        a += x[j] * y[j]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _rectify(x: Floats) -> None:
    for j in range(x.shape[0]):
        x[j] = np.float32(0) if x[j] < 0 else x[j]  # not a number stays what it is


@njit(cache=True, nogil=True)
def score_rows(
    packed: Records, features: Features, kept: Kept, keep: bool, logits: Floats, pooled: Floats
) -> None:
    """Computes logits and what is known of each state as a whole.

    Args:
        packed: `weights_type` ``(1,)``.
        features: of n states; the first feature of an item is 0 where none is.
        kept: written; see `Kept`.
        keep: whether what `backward_rows` needs is kept, of all rows. Else `kept` is room for one.
        logits: written where allowed, float32 ``(n, num_items + 1)``.
        pooled: written, float32 ``(n, width)``.
    """
    weights = packed[0]
    items, context, allowed = features
    first, item, rows, entries = kept
    first[0] = 0
    # One row from end to end, not one layer over all rows: what is known of a row stays in the
    # first cache, and no sum ever sees another row, however many there are.
    for i in range(items.shape[0]):
        at = i if keep else 0
        begin = first[at]
        end = begin
        for s in range(items.shape[1]):
            # A mask may allow an empty place; it is scored then, although it is not pooled.
            if items[i, s, 0] != 0 or allowed[i, s]:
                item[end] = s
                end += 1
        first[at + 1] = end
        own, own_entries = item[begin:end], entries[begin:end]
        _pool_row(weights, items[i], context[i], own, rows[at], own_entries)
        _score_row(weights, items[i], allowed[i], own, rows[at], own_entries, logits[i])
        copy(rows[at].pooled, pooled[i])


@njit(cache=True, nogil=True)
def _pool_row(
    weights: Record,
    items: Floats,
    features: Floats,
    item: NDArray[np.int64],
    row: Record,
    entries: Records,
) -> None:
    """Everything up to the pooled vector of one row."""
    width = row.summed.shape[0]
    copy(weights.context_bias, row.context)
    add_product(features, weights.context, row.context)
    _rectify(row.context)
    copy(weights.job_bias, row.shared)  # the context's part is the same for all items of a row
    add_product(row.context, weights.job_context, row.shared)
    clear(row.summed)
    for e in range(item.size):
        job = entries[e].job
        if items[item[e], 0] == 0:
            clear(job)
            continue
        copy(row.shared, job)
        add_product(items[item[e]], weights.job, job)
        _rectify(job)
        for j in range(width):
            row.summed[j] += job[j]
    copy(weights.pooled_bias, row.pooled)
    add_product(row.context, weights.pooled_context, row.pooled)
    add_product(row.summed, weights.pooled_summed, row.pooled)
    _rectify(row.pooled)


@njit(cache=True, nogil=True)
def _score_row(
    weights: Record,
    items: Floats,
    allowed: NDArray[np.bool_],
    item: NDArray[np.int64],
    row: Record,
    entries: Records,
    logits: Floats,
) -> None:
    """Logits of one row, from the pooled vector."""
    void = allowed.size - 1
    copy(weights.mix_bias, row.shared)
    add_product(row.pooled, weights.mix_pooled, row.shared)
    for e in range(item.size):
        if allowed[item[e]]:
            mix = entries[e].mix
            copy(row.shared, mix)
            add_product(entries[e].job, weights.mix, mix)
            _rectify(mix)
            skipped = SKIP_GAIN * _dot(items[item[e]], weights.skip)
            logits[item[e]] = _dot(mix, weights.score) + weights.score_bias[0] + skipped
    if allowed[void]:
        logits[void] = _dot(row.pooled, weights.void) + weights.void_bias[0]
