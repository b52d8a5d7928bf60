"""What a network sees of a state: a row for each slot, the context of all, and what is allowed.

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
* ``window``: 2 x horizon / arrival window, at most 1; windows of more than 255 steps count as 255.
  It is a fact of the task, and does not say how much of the window is left: a policy that is
  trained at one window has learned it, one that is trained at several needs it.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import SATURATED, StateShape, first_start, last_start

IDLE_PATIENCE = 10
"""Time steps that an idle cluster may wait after an arrival, in `World.features`."""
FOR_EVER = SATURATED + 1
"""A patience that no state reaches: void is always allowed."""


@cache
def slot_feature_names(cluster: Cluster) -> tuple[str, ...]:
    """Names of a slot's features, in order."""
    classes = range(cluster.num_classes if cluster.num_classes > 1 else 0)
    return (
        *("present", "duration", "inverse_duration"),
        *(f"demand_{r}" for r in range(cluster.num_resources)),
        *("starts_now", "starts_later", "first_start", "alignment", "area", "index"),
        *("waited", "stretched"),
        *(f"class_{c}" for c in classes),
    )


@cache
def context_feature_names(cluster: Cluster) -> tuple[str, ...]:
    """Names of the context features, in order."""
    steps, resources = range(cluster.horizon), range(cluster.num_resources)
    free = (f"free_{h}_{r}" for h in steps for r in resources)
    return (*free, "backlog", "since_arrival", "filled_slots", "window")


@njit_kernel
def write_slots(
    states: NDArray[np.uint8], shape: StateShape, try_last_start: bool, out: NDArray[np.float32]
) -> None:
    """Writes the features of the slots (`slot_feature_names`) of states, ``(n, state_size)``.

    ``out`` is float32 ``(n, num_slots, slot_size)``.
    """
    capacity, horizon, num_slots = shape.capacity, shape.horizon, shape.num_slots
    resources = capacity.size
    # As well aligned as a job can be: all of the cluster, asked for where all is free.
    best_alignment = 0.0
    for r in range(resources):
        best_alignment += float(capacity[r] * capacity[r])
    for i in range(states.shape[0]):
        state = states[i]
        for slot in range(num_slots):
            place = shape.slots_at + slot * (1 + resources)
            features = out[i, slot]
            duration = int(state[place])
            # Of an empty slot there is nothing to see.
            if duration == 0:
                features[:] = 0.0
                continue
            # What the job asks for, and how well that goes with what is free now.
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
            # When it would start.
            last = last_start(duration, horizon, try_last_start)
            start = first_start(states, i, place, capacity, last)
            behind = 3 + resources
            features[behind] = 1.0 if start == 0 else 0.0
            features[behind + 1] = 1.0 if start > 0 else 0.0
            features[behind + 2] = start / horizon if start >= 0 else 1.0
            features[behind + 3] = alignment / best_alignment
            features[behind + 4] = duration / horizon * share / resources
            features[behind + 5] = slot / max(1, num_slots - 1)
            # How long it has waited.
            waited = int(state[shape.waited_at + slot])
            features[behind + 6] = min(1.0, waited / (5 * horizon))
            features[behind + 7] = waited / (waited + duration)
            # A state shows classes only where there are several.
            if shape.num_classes > 1:
                job_class = state[shape.classes_at + slot]
                for c in range(shape.num_classes):
                    features[behind + 8 + c] = 1.0 if job_class == c else 0.0


@njit_kernel
def write_context(states: NDArray[np.uint8], shape: StateShape, out: NDArray[np.float32]) -> None:
    """Writes the features of the context (`context_feature_names`), float32 ``(n, context_size)``.

    The window, the last one, is written only where there is a column for it.
    """
    capacity, horizon, num_slots = shape.capacity, shape.horizon, shape.num_slots
    resources, num_free = capacity.size, horizon * capacity.size
    for i in range(states.shape[0]):
        state = states[i]
        # What is free in each step.
        for h in range(horizon):
            for r in range(resources):
                k = h * resources + r
                out[i, k] = (capacity[r] - state[k]) / capacity[r]
        # How much there is to do.
        filled = 0
        for slot in range(num_slots):
            if state[shape.slots_at + slot * (1 + resources)] > 0:
                filled += 1
        out[i, num_free] = min(1.0, state[shape.backlog_at] / max(1, shape.backlog_view))
        out[i, num_free + 1] = min(1.0, state[shape.since_at] / horizon)
        out[i, num_free + 2] = filled / num_slots
        if out.shape[1] > num_free + 3:
            # In single precision from the beginning: another order would give other last bits.
            window = np.float32(max(1, state[shape.window_at]))
            out[i, num_free + 3] = min(np.float32(2 * horizon) / window, np.float32(1))


@njit_kernel
def write_allowed(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    latest: int,
    patience: int,
    out: NDArray[np.bool_],
) -> None:
    """Writes which actions are allowed: the slots whose job starts soon enough, and void.

    A job may start ``latest`` steps from now, 0 or the horizon. Void is forbidden where nothing
    runs, a job is allowed and nothing has arrived for ``patience`` time steps. ``out`` is bool
    ``(n, num_actions)``.
    """
    void = shape.num_slots
    for i in range(states.shape[0]):
        # A job is allowed if it starts soon enough, and the rules let it start there.
        any_slot = False
        for slot in range(void):
            place = shape.slots_at + slot * (1 + shape.capacity.size)
            last = last_start(int(states[i, place]), shape.horizon, try_last_start)
            start = first_start(states, i, place, shape.capacity, min(latest, last))
            out[i, slot] = start >= 0
            any_slot = any_slot or start >= 0
        out[i, void] = True
        # Whoever always takes his favorite action shall finish all jobs, too.
        idle = states[i, shape.since_at] >= patience and not states[i, : shape.slots_at].any()
        if idle and any_slot:
            out[i, void] = False
