"""The gradient of the set scorer's weights, compiled; see `kernels`."""

from functools import cache
from typing import Any

import numpy as np

from cluster_env.core.compiled import njit
from cluster_env.core.world import Features
from rllib_configs.networks.set_scorer.kernels import (
    ORDERED,
    SKIP_GAIN,
    Floats,
    Kept,
    Record,
    Records,
    add_product,
    clear,
    copy,
)

BLOCK = 64  # rows whose gradients are held at once, so that they stay in a cache


_TRANSPOSED = ("job_context", "pooled_context", "pooled_summed", "mix", "mix_pooled")


def transposed(packed: Records) -> Records:
    """The matrices that gradients are sent back through, ``(outputs, inputs)``, as ``(1,)``."""
    width = packed["void"].shape[1]
    found = np.empty(1, [(name, np.float32, (width, width)) for name in _TRANSPOSED])
    for name in _TRANSPOSED:
        found[name][0] = packed[name][0].T
    return found


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
    features: Features,
    kept: Kept,
    logit_gradient: Floats,
    pooled_gradient: Floats,
    scratch: Records,
    gradient: Records,
) -> None:
    """Adds the gradient of all weights, a sum over rows in their order.

    Args:
        packed: `weights_type` ``(1,)``.
        transposed: of these, see `transposed`.
        features: of n states.
        kept: by `score_rows`, of all of them.
        logit_gradient: float32 ``(n, num_items + 1)``; only those of allowed actions count.
        pooled_gradient: float32 ``(n, width)``.
        scratch: `block_type` ``(1,)``.
        gradient: added to, `weights_type` ``(1,)``.
    """
    block = scratch[0]
    items, context, _ = features
    first, item, rows, entries = kept
    # Rows of a block leave what they have to say about the weights side by side, so that matrices
    # of weights are gone over once in eight rows (`_add_outer`) and not in every row.
    for begin in range(0, items.shape[0], BLOCK):
        end = min(begin + BLOCK, items.shape[0])
        for i in range(begin, end):
            copy(pooled_gradient[i], block.pooled[i - begin])
            _unscore_row(
                packed, transposed, features, kept, i, logit_gradient[i], scratch, gradient
            )
            _unpool_row(transposed, kept, i, scratch)
            for e in range(first[i], first[i + 1]):
                copy(items[i, item[e]], block.features[e - first[begin]])
        _add_block(
            context[begin:end],
            rows[begin:end],
            entries[first[begin] : first[end]],
            block,
            gradient[0],
        )


@njit(cache=True, nogil=True, fastmath=ORDERED)
def _unscore_row(
    packed: Records,
    transposed: Records,
    features: Features,
    kept: Kept,
    i: int,
    logit_gradient: Floats,
    scratch: Records,
    gradient: Records,
) -> None:
    """From the logits of row `i` to its pooled vector and its jobs."""
    weights, back, block, total = packed[0], transposed[0], scratch[0], gradient[0]
    items, allowed, row = features.items[i], features.allowed[i], kept.rows[i]
    begin, end, item, entries = kept.first[i], kept.first[i + 1], kept.item, kept.entries
    offset = kept.first[i - i % BLOCK]
    width = row.summed.shape[0]
    shared, pooled = block.mix_shared[i % BLOCK], block.pooled[i % BLOCK]
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
        add_product(mix, back.mix, job)
    if allowed[allowed.size - 1]:
        slope = logit_gradient[allowed.size - 1]
        total.void_bias[0] += slope
        for j in range(width):
            total.void[j] += slope * row.pooled[j]
            pooled[j] += slope * weights.void[j]
    add_product(shared, back.mix_pooled, pooled)
    _cut(pooled, row.pooled)


@njit(cache=True, nogil=True)
def _unpool_row(transposed: Records, kept: Kept, i: int, scratch: Records) -> None:
    """From the pooled vector and the jobs of row `i` to the first layer."""
    back, block, row, entries = transposed[0], scratch[0], kept.rows[i], kept.entries
    offset = kept.first[i - i % BLOCK]
    width = row.summed.shape[0]
    pooled = block.pooled[i % BLOCK]
    shared, context = block.job_shared[i % BLOCK], block.context[i % BLOCK]
    clear(block.summed)
    add_product(pooled, back.pooled_summed, block.summed)
    clear(shared)
    for e in range(kept.first[i], kept.first[i + 1]):
        job = block.job[e - offset]
        for j in range(width):
            job[j] += block.summed[j]
        _cut(job, entries[e].job)
        for j in range(width):
            shared[j] += job[j]
    clear(context)
    add_product(pooled, back.pooled_context, context)
    add_product(shared, back.job_context, context)
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
