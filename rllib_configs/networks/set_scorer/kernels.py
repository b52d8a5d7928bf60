"""The set scorer's forward and backward pass, compiled, one row after the other.

A row's results never depend on the rows beside it, and every sum has a fixed order, so the same
weights give the same bits however a batch is cut. Places without an item, more than half
of them, cost nothing.

Weights and whatever is computed from them are fields of structured arrays, whose shapes are part of
their types: the compiler knows the width of each layer, and keeps a sum over its inputs in vector
registers.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from rllib_configs.networks import numba_names

numba_names.install()  # what follows is compiled for one width and cached beside others

Floats = NDArray[np.float32]
Records = NDArray[Any]  # structured
Record = Any  # an element of such an array

ORDERED = {"contract"}  # multiply-add in one instruction; sums keep their order

SKIP_GAIN = np.float32(10)
"""What weights of the skip connection are multiplied by, so that a
gradient step moves them as far as it matters."""


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
    packed: Records,
    items: Floats,
    context: Floats,
    allowed: NDArray[np.bool_],
    keep: bool,
    first: NDArray[np.int64],
    item: NDArray[np.int64],
    rows: Records,
    entries: Records,
    logits: Floats,
    pooled: Floats,
) -> None:
    """Computes logits and what is known of each state as a whole.

    Args:
        packed: `weights_type` ``(1,)``.
        items: float32 ``(n, num_items, item_size)``; the first feature is 0 where none is.
        context: float32 ``(n, context_size)``.
        allowed: bool ``(n, num_items + 1)``; the last action is void.
        keep: whether what `backward_rows` needs is kept, of all rows. Else the next four arrays
            are scratch for one row.
        first: written, int64 ``(n + 1,)`` or ``(2,)``, index of each row's first entry.
        item: written, int64 ``(n * num_items,)`` or ``(num_items,)``, each entry's item.
        rows: written, `row_type` ``(n,)`` or ``(1,)``.
        entries: written, `entry_type` ``(n * num_items,)`` or ``(num_items,)``.
        logits: written where allowed, float32 ``(n, num_items + 1)``.
        pooled: written, float32 ``(n, width)``.
    """
    weights = packed[0]
    first[0] = 0
    # One row from end to end, not one layer over all rows: what is known of a row stays in the
    # first cache, and no sum ever sees another row, however many there are.
    for i in range(items.shape[0]):
        at = i if keep else 0
        count = first[at]
        for s in range(items.shape[1]):
            # A mask may allow an empty place; it is scored then, although it is not pooled.
            if items[i, s, 0] != 0 or allowed[i, s]:
                item[count] = s
                count += 1
        first[at + 1] = count
        begin = first[at]
        _pool_row(weights, items[i], context[i], item, begin, count, rows[at], entries)
        _score_row(weights, items[i], allowed[i], item, begin, count, rows[at], entries, logits[i])
        copy(rows[at].pooled, pooled[i])


@njit(cache=True, nogil=True)
def _pool_row(
    weights: Record,
    items: Floats,
    features: Floats,
    item: NDArray[np.int64],
    begin: int,
    end: int,
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
    for e in range(begin, end):
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
    begin: int,
    end: int,
    row: Record,
    entries: Records,
    logits: Floats,
) -> None:
    """Logits of one row, from the pooled vector."""
    void = allowed.size - 1
    copy(weights.mix_bias, row.shared)
    add_product(row.pooled, weights.mix_pooled, row.shared)
    for e in range(begin, end):
        if allowed[item[e]]:
            mix = entries[e].mix
            copy(row.shared, mix)
            add_product(entries[e].job, weights.mix, mix)
            _rectify(mix)
            skipped = SKIP_GAIN * _dot(items[item[e]], weights.skip)
            logits[item[e]] = _dot(mix, weights.score) + weights.score_bias[0] + skipped
    if allowed[void]:
        logits[void] = _dot(row.pooled, weights.void) + weights.void_bias[0]
