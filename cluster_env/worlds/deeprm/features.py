"""One row of features for each slot, and the context that all slots share."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.arrays import output, require_states
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.fitting import first_start, last_start
from cluster_env.worlds.deeprm.state import StateLayout, StateShape

Features = NDArray[np.float32]


@cache
def slot_feature_names(cluster: Cluster) -> tuple[str, ...]:
    """Names of a slot's features, in order; see `slot_features`."""
    demands = (f"demand_{r}" for r in range(cluster.num_resources))
    num_classes = cluster.num_classes if cluster.num_classes > 1 else 0
    classes = (f"class_{c}" for c in range(num_classes))
    return (
        "present",
        "duration",
        "inverse_duration",
        *demands,
        "starts_now",
        "starts_later",
        "first_start",
        "alignment",
        "area",
        "index",
        "waited",
        "stretched",
        *classes,
    )


@cache
def context_feature_names(cluster: Cluster) -> tuple[str, ...]:
    """Names of the context features, in order; see `slot_features`."""
    steps, resources = range(cluster.horizon), range(cluster.num_resources)
    free = (f"free_{h}_{r}" for h in steps for r in resources)
    return (*free, "backlog", "since_arrival", "filled_slots")


def slot_features(
    states: NDArray[np.uint8],
    layout: StateLayout,
    try_last_start: bool = True,
    out: tuple[Features, Features] | None = None,
) -> tuple[Features, Features]:
    """Computes features for a network that scores each slot by itself.

    Features of a slot, each in [0, 1], all 0 for an empty slot:

    * ``present``: 1.
    * ``duration``: duration / horizon; ``inverse_duration``: 1 / duration.
    * ``demand_r``: units asked of resource r / its capacity.
    * ``starts_now``: 1 if it would start in the present time step.
    * ``starts_later``: 1 if it can be placed in the horizon, but not now.
    * ``first_start``: earliest start, in steps from now / horizon; 1 if it cannot be placed.
    * ``alignment``: sum over resources of free units now x demand / sum of capacity squared.
    * ``area``: duration / horizon x mean of the ``demand_r``.
    * ``index``: slot / (num_slots - 1), 0 for the only slot.
    * ``waited``: w / (5 x horizon) of the time steps w since its arrival, at most 1.
    * ``stretched``: w / (w + duration), 1 - 1 / slowdown if it started now.
    * ``class_c``: 1 if the job is of class c; only if the cluster has more than one class.

    Features of the context, each in [0, 1]:

    * ``free_h_r``: free units of resource r, h steps ahead / its capacity; h runs slowest.
    * ``backlog``: jobs in the backlog / backlog_view, at most 1.
    * ``since_arrival``: time steps since the last arrival / horizon, at most 1.
    * ``filled_slots``: slots with a job / num_slots.

    Args:
        states: uint8 ``(n, state_size)``.
        layout: of the states.
        try_last_start: the rule of that name (`cluster_env.worlds.deeprm.rules.Rules`).
        out: both results, written if given.

    Returns:
        The slots' features, float32 ``(n, num_slots, 11 + num_resources)``, with `num_classes` more
        of each slot if there are more than one, and the context, float32
        ``(n, horizon * num_resources + 3)``.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    require_states(states, layout)
    cluster, n = layout.cluster, states.shape[0]
    num_features = len(slot_feature_names(cluster))
    slots, context = out if out is not None else (None, None)
    slots = output(slots, (n, cluster.num_slots, num_features), np.float32)
    context = output(context, (n, len(context_feature_names(cluster))), np.float32)
    describe(states, layout.shape, try_last_start, slots, context)
    return slots, context


def window_features(states: NDArray[np.uint8], layout: StateLayout) -> Features:
    """How soon arrivals end in the kind of task that the states are of.

    A policy that is trained at one arrival window knows it without being told; one that is
    trained at several needs it to be as good at each. It is a fact of the task, the same from the
    first step to the last, and does not say how much of the window is left.

    Args:
        states: uint8 ``(n, state_size)``.
        layout: of the states.

    Returns:
        float32 ``(n, 1)``: 2 x horizon / window, at most 1. Windows of more than 255 steps count as
        255.
    """
    require_states(states, layout)
    shown = np.empty((states.shape[0], 1), np.float32)
    describe_window(states, layout.shape, shown)
    return shown


@njit(cache=True, nogil=True)
def describe(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    slots: Features,
    context: Features,
) -> None:
    """`slot_features` for compiled code; both results are written, more context is left alone."""
    _describe_slots(states, shape, try_last_start, slots)
    if shape.num_classes > 1:
        _describe_classes(states, shape, slots)
    _describe_context(states, shape, context)


@njit(cache=True, nogil=True)
def describe_window(states: NDArray[np.uint8], shape: StateShape, out: Features) -> None:
    """`window_features` for compiled code; the last column is written."""
    for i in range(states.shape[0]):
        window = np.float32(max(1, states[i, shape.window_at]))
        out[i, -1] = min(np.float32(2 * shape.horizon) / window, np.float32(1))


@njit(cache=True, nogil=True)
def _describe_slots(
    states: NDArray[np.uint8], shape: StateShape, try_last_start: bool, out: Features
) -> None:
    capacity, horizon, num_slots = shape.capacity, shape.horizon, shape.num_slots
    resources = capacity.size
    best_alignment = 0.0
    for r in range(resources):
        best_alignment += float(capacity[r] * capacity[r])
    for i in range(states.shape[0]):
        state = states[i]
        for slot in range(num_slots):
            place = shape.slots_at + slot * (1 + resources)
            features = out[i, slot]
            duration = int(state[place])
            if duration == 0:
                features[:] = 0.0
                continue
            last = last_start(duration, horizon, try_last_start)
            start = first_start(state, place, capacity, last)
            alignment = 0.0
            share = 0.0
            for r in range(resources):
                demand = np.int64(state[place + 1 + r])
                features[3 + r] = demand / capacity[r]
                alignment += (capacity[r] - state[r]) * demand
                share += demand / capacity[r]
            features[0] = 1.0
            features[1] = duration / horizon
            features[2] = 1.0 / duration
            k = 3 + resources
            features[k] = 1.0 if start == 0 else 0.0
            features[k + 1] = 1.0 if start > 0 else 0.0
            features[k + 2] = start / horizon if start >= 0 else 1.0
            features[k + 3] = alignment / best_alignment
            features[k + 4] = duration / horizon * share / resources
            features[k + 5] = slot / max(1, num_slots - 1)
            waited = int(state[shape.waited_at + slot])
            features[k + 6] = min(1.0, waited / (5 * horizon))
            features[k + 7] = waited / (waited + duration)


@njit(cache=True, nogil=True)
def _describe_classes(states: NDArray[np.uint8], shape: StateShape, out: Features) -> None:
    """Fills the last features of each slot; called after `_describe_slots`."""
    first = out.shape[2] - shape.num_classes
    for i in range(states.shape[0]):
        for slot in range(out.shape[1]):
            present = out[i, slot, 0]
            shown = states[i, shape.classes_at + slot]
            for c in range(shape.num_classes):
                out[i, slot, first + c] = present if shown == c else 0.0


@njit(cache=True, nogil=True)
def _describe_context(states: NDArray[np.uint8], shape: StateShape, out: Features) -> None:
    capacity, horizon, num_slots = shape.capacity, shape.horizon, shape.num_slots
    resources, num_free = capacity.size, horizon * capacity.size
    for i in range(states.shape[0]):
        state = states[i]
        for h in range(horizon):
            for r in range(resources):
                k = h * resources + r
                out[i, k] = (capacity[r] - state[k]) / capacity[r]
        filled = 0
        for slot in range(num_slots):
            if state[shape.slots_at + slot * (1 + resources)] > 0:
                filled += 1
        out[i, num_free] = min(1.0, state[shape.backlog_at] / max(1, shape.backlog_view))
        out[i, num_free + 1] = min(1.0, state[shape.since_at] / horizon)
        out[i, num_free + 2] = filled / num_slots
