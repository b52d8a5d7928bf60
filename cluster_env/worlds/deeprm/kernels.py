"""The compiled steps of the timeline simulator.

All functions change the arrays of a `EpisodeStates` in place and allocate nothing. At one instant
finishes come before arrivals, and arrivals before the next decision.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit

_SATURATED = 255


class Shape(NamedTuple):
    """Constants of a simulator: the cluster and the rules."""

    capacity: NDArray[np.int32]  # (num_resources,)
    horizon: int
    num_slots: int
    backlog_limit: int  # jobs that the backlog takes; only with drop_when_backlog_full
    slots_at: int  # place of the slots in a state
    backlog_at: int
    since_at: int
    waited_at: int
    window_at: int
    max_time: int
    try_last_start: bool
    linger_finished: bool
    drop_when_backlog_full: bool
    charge_after_step: bool
    stop_after_window: bool


class Jobs(NamedTuple):
    """The jobs of the loaded jobsets, padded to the largest, and what they cost."""

    arrival: NDArray[np.int32]  # (num_jobsets, most_jobs)
    duration: NDArray[np.int32]  # (num_jobsets, most_jobs)
    demand: NDArray[np.int32]  # (num_jobsets, most_jobs, num_resources)
    cost: NDArray[np.float64]  # (num_jobsets, most_jobs), charged for each step in the system
    num_jobs: NDArray[np.int32]  # (num_jobsets,)
    window: NDArray[np.int32]  # (num_jobsets,)
    busy_cost: float
    utilization_gain: float


class EpisodeStates(NamedTuple):
    """What changes, one row per episode."""

    jobset: NDArray[np.int32]  # (n,)
    packed: NDArray[np.uint8]  # (n, state_size)
    clock: NDArray[np.int32]  # (n,)
    next_job: NDArray[np.int32]  # (n,), first job that has not arrived yet
    slots: NDArray[np.int32]  # (n, num_slots), index of the job, -1 if empty
    num_in_slots: NDArray[np.int32]  # (n,)
    backlog: NDArray[np.int32]  # (n, most_jobs), jobs in order of arrival
    backlog_head: NDArray[np.int32]  # (n,)
    backlog_tail: NDArray[np.int32]  # (n,)
    running: NDArray[np.int32]  # (n, most_jobs), placed jobs in order of placing
    num_running: NDArray[np.int32]  # (n,)
    num_gone: NDArray[np.int32]  # (n,), jobs that finished or were dropped
    start: NDArray[np.int32]  # (n, most_jobs), -1 before it is placed
    cost_rate: NDArray[np.float64]  # (n,), cost of a step for the jobs in the system
    active: NDArray[np.bool_]  # (n,)
    truncated: NDArray[np.bool_]  # (n,)


class LateState(NamedTuple):
    """What the jobs cost beside once they have been in the system for long, and how far it is.

    It stands apart because every array in a tuple costs time in each step: without late costs the
    kernels get None instead, and are compiled without the branches on it.
    """

    time: NDArray[np.int32]  # (num_jobsets, most_late + 1), ascending, the last of a row never is
    job: NDArray[np.int32]  # (num_jobsets, most_late + 1), the job that then costs more
    cost: NDArray[np.float64]  # (num_jobsets, most_late + 1), for each step from then on
    next: NDArray[np.int32]  # (n,), first late cost that has not begun yet
    rate: NDArray[np.float64]  # (n, most_jobs), late costs of a job that have begun
    gone: NDArray[np.bool_]  # (n, most_jobs), whether it finished or was dropped


@njit(cache=True, inline="always")
def _fill_slot(shape: Shape, jobs: Jobs, state: EpisodeStates, e: int, slot: int, job: int) -> None:
    num_resources = shape.capacity.size
    place = shape.slots_at + slot * (1 + num_resources)
    state.slots[e, slot] = job
    if job < 0:
        state.packed[e, place : place + 1 + num_resources] = 0
        state.packed[e, shape.waited_at + slot] = 0
        return
    k = state.jobset[e]
    waited = state.clock[e] - jobs.arrival[k, job]
    state.packed[e, shape.waited_at + slot] = min(waited, _SATURATED)
    state.packed[e, place] = jobs.duration[k, job]
    for r in range(num_resources):
        state.packed[e, place + 1 + r] = jobs.demand[k, job, r]


@njit(cache=True, inline="always")
def _show_backlog(shape: Shape, state: EpisodeStates, e: int) -> None:
    waiting = state.backlog_tail[e] - state.backlog_head[e]
    state.packed[e, shape.backlog_at] = min(waiting, _SATURATED)


@njit(cache=True)
def _show_long_waits(shape: Shape, jobs: Jobs, state: EpisodeStates, e: int) -> None:
    """Writes waits that a byte cannot tell apart: each keeps behind those that came before it."""
    k = state.jobset[e]
    for slot in range(shape.num_slots):
        job = state.slots[e, slot]
        if job < 0:
            continue
        waited = state.clock[e] - jobs.arrival[k, job]
        if waited <= _SATURATED - shape.num_slots:
            continue
        most = _SATURATED
        for other in range(shape.num_slots):
            one = state.slots[e, other]
            if one >= 0 and jobs.arrival[k, one] < jobs.arrival[k, job]:
                most -= 1
        state.packed[e, shape.waited_at + slot] = min(waited, most)


@njit(cache=True, inline="always")
def _arrive(shape: Shape, jobs: Jobs, state: EpisodeStates, late: LateState | None, e: int) -> None:
    """Lets the jobs of the present instant into the slots, else into the backlog."""
    k = state.jobset[e]
    while (
        state.next_job[e] < jobs.num_jobs[k]
        and jobs.arrival[k, state.next_job[e]] == state.clock[e]
    ):
        job = state.next_job[e]
        state.next_job[e] += 1
        state.packed[e, shape.since_at] = 0
        if state.num_in_slots[e] < shape.num_slots:
            slot = 0
            while state.slots[e, slot] >= 0:
                slot += 1
            _fill_slot(shape, jobs, state, e, slot, job)
            state.num_in_slots[e] += 1
        elif (
            shape.drop_when_backlog_full
            and state.backlog_tail[e] - state.backlog_head[e] >= shape.backlog_limit
        ):
            state.num_gone[e] += 1
            if late is not None:
                late.gone[e, job] = True
            continue
        else:
            state.backlog[e, state.backlog_tail[e]] = job
            state.backlog_tail[e] += 1
            _show_backlog(shape, state, e)
        state.cost_rate[e] += jobs.cost[k, job]


@njit(cache=True, inline="always")
def _earliest_start(shape: Shape, jobs: Jobs, state: EpisodeStates, e: int, job: int) -> int:
    """First step of the horizon from which all demands fit to the end, or -1."""
    k = state.jobset[e]
    num_resources = shape.capacity.size
    duration = jobs.duration[k, job]
    last = shape.horizon - duration
    if not shape.try_last_start:
        last -= 1
    # The walk of `cluster_env.worlds.deeprm.fitting.first_start`, on the jobs' own arrays, so
    # that no view of a state has to be made for each call.
    first = 0
    step = 0
    while first <= last:
        fits = True
        for r in range(num_resources):
            if (
                state.packed[e, step * num_resources + r] + jobs.demand[k, job, r]
                > shape.capacity[r]
            ):
                fits = False
        step += 1
        if not fits:
            first = step
        elif step - first == duration:
            return first
    return -1


@njit(cache=True, inline="always")
def _place(shape: Shape, jobs: Jobs, state: EpisodeStates, e: int, slot: int) -> bool:
    """Books the job of a slot at its earliest start; False if there is no job or no room."""
    if slot < 0 or slot >= shape.num_slots or state.slots[e, slot] < 0:
        return False
    job = state.slots[e, slot]
    first = _earliest_start(shape, jobs, state, e, job)
    if first < 0:
        return False
    k = state.jobset[e]
    num_resources = shape.capacity.size
    for step in range(first, first + jobs.duration[k, job]):
        for r in range(num_resources):
            state.packed[e, step * num_resources + r] += np.uint8(jobs.demand[k, job, r])
    state.start[e, job] = state.clock[e] + first
    state.running[e, state.num_running[e]] = job
    state.num_running[e] += 1
    if state.backlog_head[e] < state.backlog_tail[e]:
        _fill_slot(shape, jobs, state, e, slot, state.backlog[e, state.backlog_head[e]])
        state.backlog_head[e] += 1
        _show_backlog(shape, state, e)
    else:
        _fill_slot(shape, jobs, state, e, slot, -1)
        state.num_in_slots[e] -= 1
    # Those behind the job waited for so long only if it did.
    if state.clock[e] - jobs.arrival[k, job] > _SATURATED - shape.num_slots:
        _show_long_waits(shape, jobs, state, e)
    return True


@njit(cache=True, inline="always")
def _finish(shape: Shape, jobs: Jobs, state: EpisodeStates, late: LateState | None, e: int) -> None:
    """Removes the finished jobs; see `Rules.linger_finished`."""
    k = state.jobset[e]
    kept = 0
    hidden = False
    for i in range(state.num_running[e]):
        job = state.running[e, i]
        # The released code deletes from the list that it walks, which skips the next entry.
        if not hidden and state.start[e, job] + jobs.duration[k, job] <= state.clock[e]:
            state.cost_rate[e] -= jobs.cost[k, job]
            state.num_gone[e] += 1
            if late is not None:
                state.cost_rate[e] -= late.rate[e, job]
                late.gone[e, job] = True
            hidden = shape.linger_finished
        else:
            hidden = False
            state.running[e, kept] = job
            kept += 1
    state.num_running[e] = kept
    # Sums of floats do not cancel to the last bit; an empty cluster costs nothing exactly.
    if kept == 0 and state.num_in_slots[e] == 0:
        state.cost_rate[e] = 0.0


@njit(cache=True, inline="always")
def _become_late(state: EpisodeStates, late: LateState, e: int) -> None:
    """Begins the late costs of the present instant, of the jobs that are in the system."""
    k = state.jobset[e]
    # The last entry of each row never begins, so that the walk needs no bound.
    while late.time[k, late.next[e]] <= state.clock[e]:
        i = late.next[e]
        late.next[e] += 1
        job = late.job[k, i]
        if job < state.next_job[e] and not late.gone[e, job]:
            late.rate[e, job] += late.cost[k, i]
            state.cost_rate[e] += late.cost[k, i]


@njit(cache=True, inline="always")
def _charge(shape: Shape, jobs: Jobs, state: EpisodeStates, e: int, step: int) -> float:
    """Reward of the time step `step`, from what is in the system now."""
    k = state.jobset[e]
    reward = -state.cost_rate[e]
    if jobs.busy_cost != 0.0 and state.num_gone[e] < jobs.num_jobs[k]:
        reward -= jobs.busy_cost
    if jobs.utilization_gain != 0.0 and step < jobs.window[k]:
        used = 0.0
        for r in range(shape.capacity.size):
            used += state.packed[e, r] / shape.capacity[r]
        reward += jobs.utilization_gain * used / shape.capacity.size
    return reward


@njit(cache=True, inline="always")
def _pass_time(
    shape: Shape, jobs: Jobs, state: EpisodeStates, late: LateState | None, e: int
) -> float:
    """One time step; returns its reward."""
    reward = 0.0 if shape.charge_after_step else _charge(shape, jobs, state, e, state.clock[e])
    num_resources = shape.capacity.size
    state.clock[e] += 1
    # Element by element, without a view, in the hottest loop of all.
    past = (shape.horizon - 1) * num_resources
    for i in range(past):
        state.packed[e, i] = state.packed[e, i + num_resources]
    for i in range(past, past + num_resources):
        state.packed[e, i] = 0
    if state.packed[e, shape.since_at] < _SATURATED:
        state.packed[e, shape.since_at] += 1
    long_waits = False
    for slot in range(shape.num_slots):
        if state.slots[e, slot] < 0:
            continue
        if state.packed[e, shape.waited_at + slot] < _SATURATED - shape.num_slots:
            state.packed[e, shape.waited_at + slot] += 1
        else:
            long_waits = True
    if long_waits:
        _show_long_waits(shape, jobs, state, e)
    # Finishes come before arrivals at one instant, so that a job that leaves makes room at once.
    _finish(shape, jobs, state, late, e)
    if state.clock[e] >= jobs.window[state.jobset[e]] and (
        shape.stop_after_window or (state.num_running[e] == 0 and state.num_in_slots[e] == 0)
    ):
        state.active[e] = False
    elif state.clock[e] > shape.max_time:
        state.active[e] = False
        state.truncated[e] = True
    else:
        _arrive(shape, jobs, state, late, e)
    if late is not None:
        _become_late(state, late, e)
    if shape.charge_after_step:
        reward = _charge(shape, jobs, state, e, state.clock[e])
    return reward


@njit(cache=True, nogil=True)
def show_classes(
    job_class: NDArray[np.uint8], state: EpisodeStates, rows: NDArray[np.int32], classes_at: int
) -> None:
    """Writes the class of the job in each slot into states, 0 for an empty slot.

    It stands apart from `step` for the same reason as `LateState`: where there is one class, which
    no state shows, it is not called, and costs nothing.

    Args:
        job_class: ``(num_jobsets, most_jobs)``.
        state: its states are changed in place.
        rows: episodes, ``(m,)``.
        classes_at: place of the classes in a state.
    """
    for i in range(rows.size):
        e = rows[i]
        k = state.jobset[e]
        for slot in range(state.slots.shape[1]):
            job = state.slots[e, slot]
            state.packed[e, classes_at + slot] = job_class[k, job] if job >= 0 else 0


@njit(cache=True, nogil=True)
def reset(
    shape: Shape,
    jobs: Jobs,
    state: EpisodeStates,
    late: LateState | None,
    rows: NDArray[np.int32],
) -> None:
    """Puts episodes at time 0, with the jobs that arrive there in the slots."""
    for i in range(rows.size):
        e = rows[i]
        state.packed[e, :] = 0
        state.packed[e, shape.window_at] = min(jobs.window[state.jobset[e]], _SATURATED)
        state.clock[e] = 0
        state.next_job[e] = 0
        state.slots[e, :] = -1
        state.num_in_slots[e] = 0
        state.backlog_head[e] = 0
        state.backlog_tail[e] = 0
        state.num_running[e] = 0
        state.num_gone[e] = 0
        state.start[e, :] = -1
        state.cost_rate[e] = 0.0
        state.active[e] = True
        state.truncated[e] = False
        if late is not None:
            late.next[e] = 0
            late.rate[e, :] = 0.0
            late.gone[e, :] = False
        _arrive(shape, jobs, state, late, e)
        if late is not None:
            _become_late(state, late, e)


@njit(cache=True, nogil=True)
def step(
    shape: Shape,
    jobs: Jobs,
    state: EpisodeStates,
    late: LateState | None,
    rows: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
) -> int:
    """Takes one decision in each of the given episodes.

    Args:
        shape: constants of the simulator.
        jobs: what is scheduled.
        state: changed in place.
        late: late costs, changed in place; None without any.
        rows: episodes to step, ``(m,)``; finished ones stay as they are.
        actions: a slot or, for anything else, void, ``(m,)``.
        rewards: written, ``(m,)``.

    Returns:
        How many of the given episodes are still active.
    """
    left = 0
    for i in range(rows.size):
        e = rows[i]
        rewards[i] = 0.0
        if not state.active[e]:
            continue
        if not _place(shape, jobs, state, e, actions[i]):
            rewards[i] = _pass_time(shape, jobs, state, late, e)
        if state.active[e]:
            left += 1
    return left
