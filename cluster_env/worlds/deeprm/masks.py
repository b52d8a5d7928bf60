"""Which actions make sense in a state."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.arrays import output, require_states
from cluster_env.worlds.deeprm.fitting import first_start, last_start
from cluster_env.worlds.deeprm.state import StateLayout, StateShape

Mask = NDArray[np.bool_]

IDLE_PATIENCE = 10
"""Time steps that an idle cluster may wait after an arrival; see `live_mask`."""


def placeable_mask(
    states: NDArray[np.uint8],
    layout: StateLayout,
    try_last_start: bool = True,
    out: Mask | None = None,
) -> Mask:
    """Marks void and the slots whose job can be placed somewhere in the horizon.

    These are the actions for which time stands still, and void. Any other action has the same
    effect as void.

    Args:
        states: uint8 ``(n, state_size)``.
        layout: of the states.
        try_last_start: the rule of that name (`cluster_env.worlds.deeprm.rules.Rules`).
        out: written if given, bool ``(n, num_actions)``.

    Returns:
        bool ``(n, num_actions)``; the last action, void, is always allowed.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    allowed = _output(states, layout, out)
    _mark(states, layout.shape, try_last_start, layout.cluster.horizon, allowed)
    return allowed


def start_now_mask(
    states: NDArray[np.uint8],
    layout: StateLayout,
    try_last_start: bool = True,
    out: Mask | None = None,
) -> Mask:
    """Marks void and the slots whose job would start in the present time step.

    A policy under this mask never books a job for later, as the heuristics never do.

    Args:
        states: uint8 ``(n, state_size)``.
        layout: of the states.
        try_last_start: the rule of that name (`cluster_env.worlds.deeprm.rules.Rules`); here
            it matters only for jobs as long as the horizon.
        out: written if given, bool ``(n, num_actions)``.

    Returns:
        bool ``(n, num_actions)``; the last action, void, is always allowed.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    allowed = _output(states, layout, out)
    _mark(states, layout.shape, try_last_start, 0, allowed)
    return allowed


def live_mask(
    states: NDArray[np.uint8],
    layout: StateLayout,
    try_last_start: bool = True,
    out: Mask | None = None,
    patience: int = IDLE_PATIENCE,
) -> Mask:
    """As `start_now_mask`, but an idle cluster may not wait for ever.

    Void is forbidden where nothing runs, a job could start, and nothing has arrived for `patience`
    time steps. So every policy under this mask finishes all jobs, one that always takes its
    favorite action included.

    Args:
        states: uint8 ``(n, state_size)``.
        layout: of the states.
        try_last_start: the rule of that name (`cluster_env.worlds.deeprm.rules.Rules`).
        out: written if given, bool ``(n, num_actions)``.
        patience: time steps that an idle cluster may wait after an arrival.

    Returns:
        bool ``(n, num_actions)``; at least one action of each row is allowed.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    allowed = _output(states, layout, out)
    mark_live(states, layout.shape, try_last_start, patience, allowed)
    return allowed


def _output(states: NDArray[np.uint8], layout: StateLayout, out: Mask | None) -> Mask:
    require_states(states, layout)
    return output(out, (states.shape[0], layout.cluster.num_actions), np.bool_)


@njit(cache=True, nogil=True)
def _mark(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    latest: int,
    allowed: Mask,
) -> None:
    for i in range(states.shape[0]):
        for slot in range(shape.num_slots):
            place = shape.slots_at + slot * (1 + shape.capacity.size)
            last = min(latest, last_start(int(states[i, place]), shape.horizon, try_last_start))
            allowed[i, slot] = first_start(states[i], place, shape.capacity, last) >= 0
        allowed[i, shape.num_slots] = True


@njit(cache=True, nogil=True)
def mark_live(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    patience: int,
    allowed: Mask,
) -> None:
    """`live_mask` for compiled code; ``allowed`` is written."""
    _mark(states, shape, try_last_start, 0, allowed)
    void = shape.num_slots
    for i in range(states.shape[0]):
        idle = states[i, shape.since_at] >= patience and not states[i, : shape.slots_at].any()
        if idle and allowed[i, :void].any():
            allowed[i, void] = False
