"""The gradient of the set scorer's weights, compiled; see `kernels`."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from rllib_configs.networks.set_scorer.kernels import (
    ORDERED,
    SKIP_GAIN,
    Floats,
    Record,
    Records,
    add_product,
    clear,
    copy,
)

BLOCK = 64  # rows whose gradients are held at once, so that they stay in a cache


@cache
def transposed_type(width: int) -> np.dtype[np.void]:
    """Type of the matrices that gradients are sent back through, ``(outputs, inputs)``."""
    shapes = {
        "job_context": (width, width),
        "pooled_context": (width, width),
        "pooled_summed": (width, width),
        "mix": (width, width),
        "mix_pooled": (width, width),
    }
    return np.dtype([(name, np.float32, shape) for name, shape in shapes.items()])


@cache
def block_type(num_items: int, item_size: int, width: int) -> np.dtype[np.void]:
    """Type of the gradients of `BLOCK` rows by what lies before each rectifier."""
    shapes = {
        "mix": (BLOCK * num_items, width),
        "mix_shared": (BLOCK, width),
        "pooled": (BLOCK, width),
        "job": (BLOCK * num_items, width),
        "job_shared": (BLOCK, width),
        "context": (BLOCK, width),
        "features": (BLOCK * num_items, item_size),
        "summed": (width,),
    }
    return np.dtype([(name, np.float32, shape) for name, shape in shapes.items()])


@njit(cache=True, nogil=True, fastmath=ORDERED)
def _add_outer(x: Floats, y: Floats, count: int, out: Floats) -> None:
    """``out += x[:count].T @ y[:count]``, a sum over rows in their order, eight at a time."""
    # Each pass over `out` loads and stores all of it; eight rows at a time do so once instead of
    # eight times. They add up from left to right, row by row, as the loop for the rest does.
    for i in range(0, count - 7, 8):
        for k in range(out.shape[0]):
            x0, x1, x2, x3 = x[i, k], x[i + 1, k], x[i + 2, k], x[i + 3, k]
            x4, x5, x6, x7 = x[i + 4, k], x[i + 5, k], x[i + 6, k], x[i + 7, k]
            for j in range(out.shape[1]):
                half = out[k, j] + x0 * y[i, j] + x1 * y[i + 1, j] + x2 * y[i + 2, j]
                half = half + x3 * y[i + 3, j] + x4 * y[i + 4, j] + x5 * y[i + 5, j]
                out[k, j] = half + x6 * y[i + 6, j] + x7 * y[i + 7, j]
    for i in range(count - count % 8, count):
        for k in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[k, j] += x[i, k] * y[i, j]


@njit(cache=True, nogil=True)
def _add_rows(y: Floats, count: int, out: Floats) -> None:
    for i in range(count):
        for j in range(out.shape[0]):
            out[j] += y[i, j]


@njit(cache=True, nogil=True)
def _cut(gradient: Floats, output: Floats) -> None:
    """The gradient before a rectifier, from the one behind it."""
    for j in range(gradient.shape[0]):
        # Asked so, an output that is not a number lets the gradient through, and it is noticed.
        gradient[j] = np.float32(0) if output[j] <= 0 else gradient[j]


@njit(cache=True, nogil=True)
def backward_rows(
    packed: Records,
    transposed: Records,
    items: Floats,
    context: Floats,
    allowed: NDArray[np.bool_],
    first: NDArray[np.int64],
    item: NDArray[np.int64],
    rows: Records,
    entries: Records,
    logit_gradient: Floats,
    pooled_gradient: Floats,
    scratch: Records,
    gradient: Records,
) -> None:
    """Adds the gradient of all weights, a sum over rows in their order.

    Args:
        packed: `weights_type` ``(1,)``.
        transposed: `transposed_type` ``(1,)``, the same matrices.
        items: float32 ``(n, num_items, item_size)``.
        context: float32 ``(n, context_size)``.
        allowed: bool ``(n, num_items + 1)``.
        first: int64 ``(n + 1,)``; this and the next three are what `score_rows` kept.
        item: int64 ``(n * num_items,)``.
        rows: `row_type` ``(n,)``.
        entries: `entry_type` ``(n * num_items,)``.
        logit_gradient: float32 ``(n, num_items + 1)``; only those of allowed actions count.
        pooled_gradient: float32 ``(n, width)``.
        scratch: `block_type` ``(1,)``.
        gradient: added to, `weights_type` ``(1,)``.
    """
    block, total = scratch[0], gradient[0]
    # Rows of a block leave what they have to say about the weights side by side, so that matrices
    # of weights are gone over once in eight rows (`_add_outer`) and not in every row.
    for begin in range(0, items.shape[0], BLOCK):
        end = min(begin + BLOCK, items.shape[0])
        for i in range(begin, end):
            copy(pooled_gradient[i], block.pooled[i - begin])
            _unscore_row(
                packed[0],
                transposed[0],
                items[i],
                allowed[i],
                item,
                first[i],
                first[i + 1],
                first[begin],
                i - begin,
                rows[i],
                entries,
                logit_gradient[i],
                block,
                total,
            )
            _unpool_row(
                transposed[0],
                first[i],
                first[i + 1],
                first[begin],
                i - begin,
                rows[i],
                entries,
                block,
            )
            for e in range(first[i], first[i + 1]):
                copy(items[i, item[e]], block.features[e - first[begin]])
        _add_block(
            context[begin:end],
            rows[begin:end],
            entries[first[begin] : first[end]],
            block,
            total,
        )


@njit(cache=True, nogil=True, fastmath=ORDERED)
def _unscore_row(
    weights: Record,
    transposed: Record,
    items: Floats,
    allowed: NDArray[np.bool_],
    item: NDArray[np.int64],
    begin: int,
    end: int,
    offset: int,
    i: int,
    row: Record,
    entries: Records,
    logit_gradient: Floats,
    block: Record,
    total: Record,
) -> None:
    """From the logits of one row to the pooled vector and the jobs; row `i` of the block."""
    width = row.summed.shape[0]
    shared, pooled = block.mix_shared[i], block.pooled[i]
    clear(shared)
    for e in range(begin, end):
        mix, job = block.mix[e - offset], block.job[e - offset]
        clear(job)
        if not allowed[item[e]]:
            clear(mix)  # it was pooled, but not scored: `_add_block` adds up zeros
            continue
        slope = logit_gradient[item[e]]
        total.score_bias[0] += slope
        for j in range(items.shape[1]):
            total.skip[j] += SKIP_GAIN * slope * items[item[e], j]
        for j in range(width):
            total.score[j] += slope * entries[e].mix[j]
            mix[j] = slope * weights.score[j]
        _cut(mix, entries[e].mix)
        for j in range(width):
            shared[j] += mix[j]  # all items share what came from the pooled vector
        add_product(mix, transposed.mix, job)
    if allowed[allowed.size - 1]:
        slope = logit_gradient[allowed.size - 1]
        total.void_bias[0] += slope
        for j in range(width):
            total.void[j] += slope * row.pooled[j]
            pooled[j] += slope * weights.void[j]
    add_product(shared, transposed.mix_pooled, pooled)
    _cut(pooled, row.pooled)


@njit(cache=True, nogil=True)
def _unpool_row(
    transposed: Record,
    begin: int,
    end: int,
    offset: int,
    i: int,
    row: Record,
    entries: Records,
    block: Record,
) -> None:
    """From the pooled vector and the jobs to the first layer; row `i` of the block."""
    width = row.summed.shape[0]
    clear(block.summed)
    add_product(block.pooled[i], transposed.pooled_summed, block.summed)
    shared, context = block.job_shared[i], block.context[i]
    clear(shared)
    for e in range(begin, end):
        job = block.job[e - offset]
        for j in range(width):
            job[j] += block.summed[j]
        _cut(job, entries[e].job)
        for j in range(width):
            shared[j] += job[j]
    clear(context)
    add_product(block.pooled[i], transposed.pooled_context, context)
    add_product(shared, transposed.job_context, context)
    _cut(context, row.context)


@njit(cache=True, nogil=True)
def _add_block(features: Floats, rows: Any, entries: Any, block: Record, total: Record) -> None:
    """Adds the gradients of the weights from a block of rows."""
    n, m = rows.shape[0], entries.shape[0]
    _add_outer(features, block.context, n, total.context)
    _add_rows(block.context, n, total.context_bias)
    _add_outer(block.features, block.job, m, total.job)
    _add_rows(block.job_shared, n, total.job_bias)
    _add_outer(rows.context, block.job_shared, n, total.job_context)
    _add_outer(rows.context, block.pooled, n, total.pooled_context)
    _add_outer(rows.summed, block.pooled, n, total.pooled_summed)
    _add_rows(block.pooled, n, total.pooled_bias)
    _add_outer(entries.job, block.mix, m, total.mix)
    _add_rows(block.mix_shared, n, total.mix_bias)
    _add_outer(rows.pooled, block.mix_shared, n, total.mix_pooled)
