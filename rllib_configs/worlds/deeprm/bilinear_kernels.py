"""What `rllib_configs.worlds.deeprm.bilinear` computes of a state, compiled."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.policy import NOT_ALLOWED
from cluster_env.worlds.deeprm.state import StateShape, first_free, first_start, last_start

LONG = 0.25
"""Jobs that last more than this share of the horizon are long."""

NUM_JOB_FEATURES = 15
"""Features of a job that do not depend on its class; see `bilinear_weights.JOB_FEATURES`."""

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
State = NDArray[np.uint8]  # (state_size,)
Starts = NDArray[np.int64]  # (num_slots,), steps from now; -1: none, or no job


@njit(cache=True, nogil=True)
def score(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    books: bool,
    patience: int,
    ahead: int,
    job: Floats,
    void: Floats,
) -> Floats:
    """Scores of all actions, float32 ``(n, num_actions)``; 0 for void where there is no other.

    Args:
        states: uint8 ``(n, state_size)``.
        shape: of the states.
        try_last_start: the rule of that name of the world that is acted in.
        books: whether jobs may be booked for later.
        patience: time steps that an idle cluster may wait after an arrival.
        ahead: steps ahead of which it sees the free units.
        job: weights of a job's features, a column for each of the state's.
        void: weights of waiting.
    """
    num_slots = shape.num_slots
    scores = np.full((states.shape[0], num_slots + 1), NOT_ALLOWED, np.float32)
    copy = np.empty((1, states.shape[1]), np.uint8)  # where jobs are booked to see what follows
    starts = np.empty(num_slots, np.int64)
    seen, weights = np.empty(void.size), np.empty(job.shape[0])
    looks = np.empty(job.shape[0])
    for i in range(states.shape[0]):
        copy[0] = states[i]
        if not _find_starts(states, i, shape, try_last_start, books, starts):
            scores[i, num_slots] = 0.0
            continue
        head, before = _look_around(states, i, shape, ahead, starts, seen)
        for f in range(weights.size):
            weights[f] = 0.0
            for g in range(seen.size):
                weights[f] += job[f, g] * seen[g]
        for slot in range(num_slots):
            if starts[slot] < 0:
                continue
            _look_at(copy, shape, starts, slot, head, before, looks)
            total = 0.0
            for f in range(weights.size):
                total += weights[f] * looks[f]
            scores[i, slot] = total
        if _may_wait(states[i], shape, patience):
            total = 0.0
            for g in range(seen.size):
                total += void[g] * seen[g]
            scores[i, num_slots] = total
    return scores


@njit(cache=True, nogil=True)
def observe(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    books: bool,
    patience: int,
    ahead: int,
    looks: Floats,
    seen: Floats,
    allowed: NDArray[np.bool_],
) -> None:
    """Writes what `score` multiplies; see there for the first arguments.

    Looks are float32 ``(n, num_slots, job features)``, 0 for what is not allowed; what is seen is
    float32 ``(n, state features)``, 0 where no job can start or be booked; allowed is bool
    ``(n, num_actions)``.
    """
    num_slots = shape.num_slots
    copy = np.empty((1, states.shape[1]), np.uint8)
    starts = np.empty(num_slots, np.int64)
    of_state, of_job = np.empty(seen.shape[1]), np.empty(looks.shape[2])
    looks[:], seen[:], allowed[:] = 0.0, 0.0, False
    for i in range(states.shape[0]):
        copy[0] = states[i]
        if not _find_starts(states, i, shape, try_last_start, books, starts):
            allowed[i, num_slots] = True
            continue
        head, before = _look_around(states, i, shape, ahead, starts, of_state)
        seen[i] = of_state
        for slot in range(num_slots):
            if starts[slot] >= 0:
                _look_at(copy, shape, starts, slot, head, before, of_job)
                looks[i, slot], allowed[i, slot] = of_job, True
        allowed[i, num_slots] = _may_wait(states[i], shape, patience)


@njit(cache=True, nogil=True)
def score_observed(
    looks: Floats,
    seen: Floats,
    allowed: NDArray[np.bool_],
    job: Floats,
    void: Floats,
    temperature: float,
    logits: Floats,
) -> None:
    """Writes the allowed logits of what `observe` has written, scores / temperature.

    What is seen may have further columns behind those of `observe`, float32 ``(n, state columns)``,
    for which weights have columns, too.
    """
    weights = np.empty(job.shape[0])
    void_slot = looks.shape[1]
    for i in range(looks.shape[0]):
        for f in range(weights.size):
            weights[f] = 0.0
            for g in range(seen.shape[1]):
                weights[f] += job[f, g] * seen[i, g]
        for slot in range(void_slot):
            if allowed[i, slot]:
                total = 0.0
                for f in range(weights.size):
                    total += weights[f] * looks[i, slot, f]
                logits[i, slot] = total / temperature
        if allowed[i, void_slot]:
            total = 0.0
            for g in range(seen.shape[1]):
                total += void[g] * seen[i, g]
            logits[i, void_slot] = total / temperature


@njit(cache=True, nogil=True)
def add_gradient(
    looks: Floats,
    seen: Floats,
    allowed: NDArray[np.bool_],
    slopes: Floats,
    temperature: float,
    job: Doubles,
    void: Doubles,
) -> None:
    """Adds the gradient of the weights, from that of the logits of `score_observed`.

    The sums are float64 ``(job features, state columns)`` and ``(state columns,)``.
    """
    of_looks = np.empty(looks.shape[2])
    void_slot = looks.shape[1]
    for i in range(looks.shape[0]):
        of_looks[:] = 0.0
        for slot in range(void_slot):
            if allowed[i, slot]:
                slope = slopes[i, slot] / temperature
                for f in range(of_looks.size):
                    of_looks[f] += slope * looks[i, slot, f]
        for f in range(of_looks.size):
            for g in range(seen.shape[1]):
                job[f, g] += of_looks[f] * seen[i, g]
        if allowed[i, void_slot]:
            slope = slopes[i, void_slot] / temperature
            for g in range(seen.shape[1]):
                void[g] += slope * seen[i, g]


@njit(cache=True, nogil=True)
def _may_wait(state: State, shape: StateShape, patience: int) -> bool:
    """False for an idle cluster that has waited for long enough: it must work."""
    return bool(state[shape.since_at] < patience or state[: shape.slots_at].any())


@njit(cache=True, nogil=True)
def _find_starts(
    states: NDArray[np.uint8],
    i: int,
    shape: StateShape,
    try_last_start: bool,
    books: bool,
    starts: Starts,
) -> bool:
    """Writes the step at which each job would start; False if none can."""
    found = False
    for slot in range(shape.num_slots):
        place = shape.slots_at + slot * (1 + shape.capacity.size)
        last = last_start(np.int64(states[i, place]), shape.horizon, try_last_start)
        last = last if books else min(last, 0)
        starts[slot] = first_start(states, i, place, shape.capacity, last)
        found = found or starts[slot] >= 0
    return found


@njit(cache=True, nogil=True)
def _free(state: State, shape: StateShape, step: int) -> float:
    """Share of the cluster that is free at a step, mean over resources."""
    resources = shape.capacity.size
    free = 0.0
    for r in range(resources):
        units = np.int64(state[step * resources + r])
        free += (shape.capacity[r] - units) / shape.capacity[r] / resources
    return free


@njit(cache=True, nogil=True)
def _look_around(
    states: NDArray[np.uint8],
    i: int,
    shape: StateShape,
    ahead: int,
    starts: Starts,
    seen: Doubles,
) -> tuple[int, int]:
    """Writes `STATE_FEATURES` of a state.

    Returns:
        The slot of the oldest job that cannot start now, or -1, and the step from which it fits.
    """
    num_slots, state = shape.num_slots, states[i]
    filled, num_long, startable = 0, 0, 0
    for slot in range(num_slots):
        duration = state[shape.slots_at + slot * (1 + shape.capacity.size)]
        filled += duration > 0
        num_long += duration > LONG * shape.horizon
        startable += starts[slot] == 0
    backlog = float(state[shape.backlog_at])
    most = float(max(1, shape.backlog_view))
    seen[0] = _free(state, shape, 0)
    seen[1] = _free(state, shape, ahead)
    seen[2] = min(1.0, backlog / most)
    seen[3] = min(1.0, state[shape.since_at] / shape.horizon)
    seen[4] = filled / num_slots
    seen[5] = num_long / num_slots
    seen[6] = startable / num_slots
    seen[7] = min(1.0, np.log(1.0 + backlog) / np.log(1.0 + most))
    seen[8] = 1.0
    head = _oldest(state, shape, starts)
    if head < 0:
        return head, 0
    place = shape.slots_at + head * (1 + shape.capacity.size)
    return head, first_free(states, i, place, shape.capacity, shape.horizon)


@njit(cache=True, nogil=True)
def _oldest(state: State, shape: StateShape, starts: Starts) -> int:
    """Slot of the job that has waited longest of those that cannot start now; -1 if all can."""
    found = -1
    for slot in range(shape.num_slots):
        if state[shape.slots_at + slot * (1 + shape.capacity.size)] > 0 and starts[slot] != 0:
            waited = state[shape.waited_at + slot]
            if found < 0 or waited > state[shape.waited_at + found]:
                found = slot
    return found


@njit(cache=True, nogil=True)
def _look_at(
    copy: NDArray[np.uint8],
    shape: StateShape,
    starts: Starts,
    slot: int,
    head: int,
    before: int,
    looks: Doubles,
) -> None:
    """Writes `JOB_FEATURES` of a job that can start or be booked; see `_look_behind`.

    Where there is room for them, those of its class follow; see `BilinearShapes.num_classes`.
    """
    _look_upon(copy[0], shape, starts, slot, looks)
    _look_behind(copy, shape, starts, slot, head, before, looks)
    if looks.size > NUM_JOB_FEATURES:
        classes = shape.num_classes
        looks[NUM_JOB_FEATURES:] = 0.0
        job_class = np.int64(copy[0, shape.classes_at + slot])
        looks[NUM_JOB_FEATURES + job_class] = 1.0
        looks[NUM_JOB_FEATURES + classes + job_class] = looks[1]


@njit(cache=True, nogil=True)
def _look_upon(state: State, shape: StateShape, starts: Starts, slot: int, looks: Doubles) -> None:
    """Writes those of `JOB_FEATURES` that are of the job, its wait and where it would run."""
    capacity, horizon, resources = shape.capacity, shape.horizon, shape.capacity.size
    place = shape.slots_at + slot * (1 + resources)
    duration, start = np.int64(state[place]), starts[slot]
    largest, mean, left, alignment, best = 0.0, 0.0, 1.0, 0.0, 0.0
    for r in range(resources):
        demand = np.int64(state[place + 1 + r])
        largest = max(largest, demand / capacity[r])
        mean += demand / capacity[r] / resources
        alignment += (capacity[r] - np.int64(state[r])) * demand
        best += capacity[r] * capacity[r]
        used = np.int64(state[start * resources + r]) + demand
        left = min(left, (capacity[r] - used) / capacity[r])
    waited = float(state[shape.waited_at + slot])
    end = start + duration
    looks[0] = duration / horizon
    looks[1] = 1.0 / duration
    looks[2] = largest
    looks[3] = mean
    looks[4] = alignment / best
    looks[5] = mean * duration / horizon
    looks[6] = min(1.0, waited / (5 * horizon))
    looks[7] = waited / (waited + duration)
    looks[8] = 1.0 if duration > LONG * horizon else 0.0
    looks[9] = left
    looks[10] = _free(state, shape, end) if end < horizon else 1.0
    looks[11] = 1.0 if start > 0 else 0.0
    looks[12] = start / horizon


@njit(cache=True, nogil=True)
def _look_behind(
    copy: NDArray[np.uint8],
    shape: StateShape,
    starts: Starts,
    slot: int,
    head: int,
    before: int,
    looks: Doubles,
) -> None:
    """Writes those of `JOB_FEATURES` that say what the job would do to others.

    Args:
        copy: uint8 ``(1, state_size)``, a state; the job is booked for the time of the call.
        shape: of the state.
        starts: of the jobs.
        slot: of the job.
        head: slot of the oldest job that cannot start now, or -1.
        before: step from which that one fits.
        looks: written.
    """
    capacity, horizon, width = shape.capacity, shape.horizon, 1 + shape.capacity.size
    place, start = shape.slots_at + slot * width, starts[slot]
    state = copy[0]
    _book(state, place, start, capacity.size, 1)
    looks[13], looks[14] = 0.0, 0.0
    if head >= 0 and head != slot:
        after = first_free(copy, 0, shape.slots_at + head * width, capacity, horizon)
        looks[13] = (after - before) / horizon
    if start == 0:
        blocked = 0
        for other in range(shape.num_slots):
            if other != slot and starts[other] == 0:
                beside = shape.slots_at + other * width
                blocked += first_start(copy, 0, beside, capacity, 0) < 0
        looks[14] = blocked / shape.num_slots
    _book(state, place, start, capacity.size, -1)


@njit(cache=True, nogil=True)
def _book(state: State, place: int, start: int, resources: int, times: int) -> None:
    """Books a job, or with -1 takes it back."""
    for step in range(start, start + np.int64(state[place])):
        for r in range(resources):
            state[step * resources + r] += times * state[place + 1 + r]
