"""How much of something there was in stretches of time: jobs that wait, processors in use."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def means_between(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    weight: ArrayLike,
    edges: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Mean total weight of what is there, in each stretch of time; exact, without sampling.

    Args:
        begin: when each thing comes, ``(n,)``.
        end: when it goes, ``(n,)``, not before ``begin``.
        weight: of each, ``(n,)``, or of all.
        edges: rising, ``(num_stretches + 1,)``.

    Returns:
        float64 ``(num_stretches,)``.
    """
    weights = np.broadcast_to(np.asarray(weight, np.float64), begin.shape)
    total = _since(begin, weights, edges) - _since(end, weights, edges)
    return np.asarray(np.diff(total) / np.diff(edges), np.float64)


def _since(
    times: NDArray[np.int64], weights: NDArray[np.float64], at: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum over all things of weight times the time that has passed since theirs, if it has."""
    order = np.argsort(times, kind="stable")
    shifted = (times[order] - at[0]).astype(np.float64)
    count = np.concatenate([[0.0], np.cumsum(weights[order])])
    moment = np.concatenate([[0.0], np.cumsum(weights[order] * shifted)])
    known = np.searchsorted(times[order], at, side="right")
    return np.asarray((at - at[0]) * count[known] - moment[known], np.float64)
