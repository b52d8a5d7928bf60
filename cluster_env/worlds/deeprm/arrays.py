"""What every observation asks of its arguments before compiled code trusts them."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm.state import StateLayout


def require_states(states: NDArray[np.uint8], layout: StateLayout) -> None:
    """Makes sure that states have the type and the size that the layout says.

    Raises:
        InputError: if they do not.
    """
    if states.ndim != 2 or states.shape[1] != layout.size or states.dtype != np.uint8:
        raise InputError(
            f"states of this cluster have the shape (n, {layout.size}) and the type uint8, but "
            f"{states.shape} and {states.dtype} were given"
        )


def output(out: NDArray[Any] | None, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Returns the array to write to: the given one, or a new one.

    Raises:
        InputError: if the given one has another shape or type.
    """
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != np.dtype(dtype):
        raise InputError(
            f"out must have the shape {shape} and the type {np.dtype(dtype)}, but {out.shape} and "
            f"{out.dtype} were given"
        )
    return out
