"""Which actions make sense in a state."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cluster_env.observations.arrays import capacity_of, output, require_codes
from cluster_env.observations.kernels import first_start, last_start
from cluster_env.simulators.code import CodeLayout

Mask = NDArray[np.bool_]

IDLE_PATIENCE = 10
"""Time steps that an idle cluster may wait after an arrival; see `live_mask`."""


def placeable_mask(
    codes: NDArray[np.uint8],
    layout: CodeLayout,
    try_last_start: bool = True,
    out: Mask | None = None,
) -> Mask:
    """Marks void and the slots whose job can be placed somewhere in the horizon.

    These are the actions for which time stands still, and void. Any other action has the same
    effect as void.

    Args:
        codes: uint8 ``(n, code_size)``.
        layout: of the codes.
        try_last_start: the rule of that name (`cluster_env.simulators.rules.TimelineRules`).
        out: written if given, bool ``(n, num_actions)``.

    Returns:
        bool ``(n, num_actions)``; the last action, void, is always allowed.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    return _marked(codes, layout, try_last_start, layout.cluster.horizon, out)


def start_now_mask(
    codes: NDArray[np.uint8],
    layout: CodeLayout,
    try_last_start: bool = True,
    out: Mask | None = None,
) -> Mask:
    """Marks void and the slots whose job would start in the present time step.

    A policy under this mask never books a job for later, as the heuristics never do.

    Args:
        codes: uint8 ``(n, code_size)``.
        layout: of the codes.
        try_last_start: the rule of that name (`cluster_env.simulators.rules.TimelineRules`); here
            it matters only for jobs as long as the horizon.
        out: written if given, bool ``(n, num_actions)``.

    Returns:
        bool ``(n, num_actions)``; the last action, void, is always allowed.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    return _marked(codes, layout, try_last_start, 0, out)


def live_mask(
    codes: NDArray[np.uint8],
    layout: CodeLayout,
    try_last_start: bool = True,
    out: Mask | None = None,
    patience: int = IDLE_PATIENCE,
) -> Mask:
    """As `start_now_mask`, but an idle cluster may not wait for ever.

    Void is forbidden where nothing runs, a job could start, and nothing has arrived for `patience`
    time steps. So every policy under this mask finishes all jobs, one that always takes its
    favorite action included.

    Args:
        codes: uint8 ``(n, code_size)``.
        layout: of the codes.
        try_last_start: the rule of that name (`cluster_env.simulators.rules.TimelineRules`).
        out: written if given, bool ``(n, num_actions)``.
        patience: time steps that an idle cluster may wait after an arrival.

    Returns:
        bool ``(n, num_actions)``; at least one action of each row is allowed.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    allowed = start_now_mask(codes, layout, try_last_start, out)
    idle = ~codes[:, layout.occupied].any(axis=1) & (codes[:, layout.since] >= patience)
    allowed[:, -1] = ~(idle & allowed[:, :-1].any(axis=1))
    return allowed


def _marked(
    codes: NDArray[np.uint8],
    layout: CodeLayout,
    try_last_start: bool,
    latest: int,
    out: Mask | None,
) -> Mask:
    require_codes(codes, layout)
    cluster = layout.cluster
    allowed: Mask = output(out, (codes.shape[0], cluster.num_actions), np.bool_)
    _mark(codes, capacity_of(layout), cluster.horizon, try_last_start, latest, allowed)
    return allowed


@njit(cache=True, nogil=True)
def _mark(
    codes: NDArray[np.uint8],
    capacity: NDArray[np.int64],
    horizon: int,
    try_last_start: bool,
    latest: int,
    allowed: Mask,
) -> None:
    resources = capacity.size
    num_slots = allowed.shape[1] - 1
    for i in range(codes.shape[0]):
        for slot in range(num_slots):
            place = horizon * resources + slot * (1 + resources)
            last = min(latest, last_start(int(codes[i, place]), horizon, try_last_start))
            allowed[i, slot] = first_start(codes[i], place, capacity, last) >= 0
        allowed[i, num_slots] = True
