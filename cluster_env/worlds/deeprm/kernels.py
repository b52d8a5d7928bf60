"""The compiled steps of DeepRM's simulator.

All functions change the arrays of `EpisodeStates` in place and allocate nothing. At one instant
finishes come before arrivals, and arrivals before the next decision.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.deeprm.state import SATURATED, StateShape, first_start, last_start


class Switches(NamedTuple):
    """The rules of a world; see `Rules`."""

    max_time: int
    try_last_start: bool
    linger_finished: bool
    drop_when_backlog_full: bool
    charge_after_step: bool
    stop_after_window: bool


class Jobs(NamedTuple):
    """The jobs of the loaded jobsets, padded to the largest, and what they cost.

    Late costs are a list for each jobset in the order of time, so that an episode walks on by its
    clock, instead of asking every job in every step how long it has been in the system.
    """

    arrival: NDArray[np.int32]  # (num_jobsets, most_jobs)
    duration: NDArray[np.int32]  # (num_jobsets, most_jobs)
    demand: NDArray[np.int32]  # (num_jobsets, most_jobs, num_resources)
    job_class: NDArray[np.uint8]  # (num_jobsets, most_jobs)
    cost: NDArray[np.float64]  # (num_jobsets, most_jobs), charged for each step in the system
    late_time: NDArray[np.int32]  # (num_jobsets, most_late + 1), ascending, the last never is
    late_job: NDArray[np.int32]  # (num_jobsets, most_late + 1), the job that then costs more
    late_cost: NDArray[np.float64]  # (num_jobsets, most_late + 1), for each step from then on
    num_jobs: NDArray[np.int32]  # (num_jobsets,)
    window: NDArray[np.int32]  # (num_jobsets,)
    busy_cost: float
    utilization_gain: float


class EpisodeStates(NamedTuple):
    """What changes, one row for each episode."""

    jobset: NDArray[np.int32]  # (n,)
    packed: NDArray[np.uint8]  # (n, state_size), what policies see, see `StateLayout`
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
    gone: NDArray[np.bool_]  # (n, most_jobs), which they are
    start: NDArray[np.int32]  # (n, most_jobs), -1 before it is placed
    cost_rate: NDArray[np.float64]  # (n,), cost of a step for the jobs in the system
    next_late: NDArray[np.int32]  # (n,), first late cost that has not begun yet
    late_rate: NDArray[np.float64]  # (n, most_jobs), late costs of a job that have begun
    active: NDArray[np.bool_]  # (n,)
    truncated: NDArray[np.bool_]  # (n,)


class Episodes(NamedTuple):
    """All that the kernels of a simulator work on."""

    shape: StateShape  # of the states
    rules: Switches
    jobs: Jobs
    state: EpisodeStates


@njit_kernel
def reset(episodes: Episodes, rows: NDArray[np.int32]) -> None:
    """Puts episodes at time 0, with the jobs that arrive there in the slots."""
    shape, jobs, state = episodes.shape, episodes.jobs, episodes.state
    for i in range(rows.size):
        row = rows[i]
        # An empty cluster, of which a state shows the arrival window alone.
        state.packed[row, :] = 0
        state.packed[row, shape.window_at] = min(jobs.window[state.jobset[row]], SATURATED)
        state.clock[row] = 0
        state.slots[row, :] = -1
        state.num_in_slots[row] = 0
        state.backlog_head[row] = 0
        state.backlog_tail[row] = 0
        state.num_running[row] = 0
        # No job has arrived, started, finished or cost anything.
        state.next_job[row] = 0
        state.start[row, :] = -1
        state.num_gone[row] = 0
        state.gone[row, :] = False
        state.cost_rate[row] = 0.0
        state.next_late[row] = 0
        state.late_rate[row, :] = 0.0
        state.active[row] = True
        state.truncated[row] = False
        _arrive(episodes, row)
        _become_late(episodes, row)


@njit_kernel
def step(
    episodes: Episodes,
    rows: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
) -> int:
    """Takes one decision in each of the given episodes; returns how many are still active.

    Actions are a slot or, for anything else, void; ended episodes stay as they are. Rows, actions
    and rewards, which are written, are ``(m,)``.
    """
    active = episodes.state.active
    num_active = 0
    for i in range(rows.size):
        row = rows[i]
        rewards[i] = 0.0
        if not active[row]:
            continue
        # A booking takes no time and costs nothing; whatever cannot be booked lets a step pass.
        if not _book(episodes, row, actions[i]):
            rewards[i] = _pass_time(episodes, row)
        if active[row]:
            num_active += 1
    return num_active


@njit_inlined
def _book(episodes: Episodes, row: int, slot: int) -> bool:
    """Books the job of a slot at its earliest start; False if there is no job or no room."""
    shape, jobs, state = episodes.shape, episodes.jobs, episodes.state
    if slot < 0 or slot >= shape.num_slots or state.slots[row, slot] < 0:
        return False
    resources = shape.capacity.size
    place = shape.slots_at + slot * (1 + resources)
    duration = np.int64(state.packed[row, place])
    last = last_start(duration, shape.horizon, episodes.rules.try_last_start)
    first = first_start(state.packed, row, place, shape.capacity, last)
    if first < 0:
        return False
    # Book the job's units from its start to its end.
    for step in range(first, first + duration):
        for r in range(resources):
            state.packed[row, step * resources + r] += state.packed[row, place + 1 + r]
    job = state.slots[row, slot]
    state.start[row, job] = state.clock[row] + first
    state.running[row, state.num_running[row]] = job
    state.num_running[row] += 1
    # The first job of the backlog moves up into the slot.
    if state.backlog_head[row] < state.backlog_tail[row]:
        _fill_slot(episodes, row, slot, state.backlog[row, state.backlog_head[row]])
        state.backlog_head[row] += 1
        _show_backlog(episodes, row)
    else:
        _fill_slot(episodes, row, slot, -1)
        state.num_in_slots[row] -= 1
    # Those behind the job waited for so long only if it did.
    waited = state.clock[row] - jobs.arrival[state.jobset[row], job]
    if waited > SATURATED - shape.num_slots:
        _show_long_waits(episodes, row)
    return True


@njit_inlined
def _pass_time(episodes: Episodes, row: int) -> float:
    """One time step; returns its reward."""
    shape, jobs, state, rules = episodes.shape, episodes.jobs, episodes.state, episodes.rules
    reward = 0.0
    if not rules.charge_after_step:
        reward = _charge(episodes, row, state.clock[row])
    state.clock[row] += 1
    # Move the horizon on by one step, element by element: between slices that overlap numba
    # copies by way of new memory.
    resources = shape.capacity.size
    past = (shape.horizon - 1) * resources
    for i in range(past):
        state.packed[row, i] = state.packed[row, i + resources]
    for i in range(past, past + resources):
        state.packed[row, i] = 0
    # Waits grow by one step; those that a byte can no longer tell apart are written anew.
    if state.packed[row, shape.since_at] < SATURATED:
        state.packed[row, shape.since_at] += 1
    long_waits = False
    for slot in range(shape.num_slots):
        if state.slots[row, slot] < 0:
            continue
        if state.packed[row, shape.waited_at + slot] < SATURATED - shape.num_slots:
            state.packed[row, shape.waited_at + slot] += 1
        else:
            long_waits = True
    if long_waits:
        _show_long_waits(episodes, row)
    # Finishes come before arrivals at one instant, so that a job that leaves makes room at once.
    _finish(episodes, row)
    # The episode ends, is cut, or takes in the jobs of the new instant.
    if state.clock[row] >= jobs.window[state.jobset[row]] and (
        rules.stop_after_window or (state.num_running[row] == 0 and state.num_in_slots[row] == 0)
    ):
        state.active[row] = False
    elif state.clock[row] > rules.max_time:
        state.active[row] = False
        state.truncated[row] = True
    else:
        _arrive(episodes, row)
    _become_late(episodes, row)
    if rules.charge_after_step:
        reward = _charge(episodes, row, state.clock[row])
    return reward


@njit_inlined
def _charge(episodes: Episodes, row: int, step: int) -> float:
    """Reward of a time step, from what is in the system now."""
    shape, jobs, state = episodes.shape, episodes.jobs, episodes.state
    jobset = state.jobset[row]
    # What jobs cost by themselves is kept up to date; the rest belongs to the machine.
    reward = -state.cost_rate[row]
    if jobs.busy_cost != 0.0 and state.num_gone[row] < jobs.num_jobs[jobset]:
        reward -= jobs.busy_cost
    # The present step comes first in a state: its units are in use now.
    if jobs.utilization_gain != 0.0 and step < jobs.window[jobset]:
        used = 0.0
        for r in range(shape.capacity.size):
            used += state.packed[row, r] / shape.capacity[r]
        reward += jobs.utilization_gain * used / shape.capacity.size
    return reward


@njit_inlined
def _finish(episodes: Episodes, row: int) -> None:
    """Removes the finished jobs; see `Rules.linger_finished`."""
    jobs, state = episodes.jobs, episodes.state
    jobset = state.jobset[row]
    kept = 0
    hidden = False
    for i in range(state.num_running[row]):
        job = state.running[row, i]
        # The released code deletes from the list that it walks, which skips the next entry.
        if not hidden and state.start[row, job] + jobs.duration[jobset, job] <= state.clock[row]:
            state.cost_rate[row] -= jobs.cost[jobset, job]
            state.cost_rate[row] -= state.late_rate[row, job]
            state.num_gone[row] += 1
            state.gone[row, job] = True
            hidden = episodes.rules.linger_finished
        else:
            hidden = False
            state.running[row, kept] = job
            kept += 1
    state.num_running[row] = kept
    # Sums of floats do not cancel to the last bit; an empty cluster costs nothing exactly.
    if kept == 0 and state.num_in_slots[row] == 0:
        state.cost_rate[row] = 0.0


@njit_inlined
def _arrive(episodes: Episodes, row: int) -> None:
    """Lets the jobs of the present instant into the slots, else into the backlog."""
    shape, jobs, state = episodes.shape, episodes.jobs, episodes.state
    jobset = state.jobset[row]
    while (
        state.next_job[row] < jobs.num_jobs[jobset]
        and jobs.arrival[jobset, state.next_job[row]] == state.clock[row]
    ):
        job = state.next_job[row]
        state.next_job[row] += 1
        state.packed[row, shape.since_at] = 0
        if state.num_in_slots[row] < shape.num_slots:
            # The first empty slot takes the job.
            slot = 0
            while state.slots[row, slot] >= 0:
                slot += 1
            _fill_slot(episodes, row, slot, job)
            state.num_in_slots[row] += 1
        elif (
            episodes.rules.drop_when_backlog_full
            and state.backlog_tail[row] - state.backlog_head[row] >= shape.backlog_view
        ):
            # A dropped job costs nothing, now or later.
            state.num_gone[row] += 1
            state.gone[row, job] = True
            continue
        else:
            # The backlog keeps the order of arrival.
            state.backlog[row, state.backlog_tail[row]] = job
            state.backlog_tail[row] += 1
            _show_backlog(episodes, row)
        state.cost_rate[row] += jobs.cost[jobset, job]


@njit_inlined
def _become_late(episodes: Episodes, row: int) -> None:
    """Begins the late costs of the present instant, of the jobs that are in the system."""
    jobs, state = episodes.jobs, episodes.state
    jobset = state.jobset[row]
    # The last entry of each list never begins, so that the walk needs no bound.
    while jobs.late_time[jobset, state.next_late[row]] <= state.clock[row]:
        i = state.next_late[row]
        state.next_late[row] += 1
        job = jobs.late_job[jobset, i]
        # Where the episode ends now, jobs of this instant have not been let in.
        if job < state.next_job[row] and not state.gone[row, job]:
            state.late_rate[row, job] += jobs.late_cost[jobset, i]
            state.cost_rate[row] += jobs.late_cost[jobset, i]


@njit_inlined
def _fill_slot(episodes: Episodes, row: int, slot: int, job: int) -> None:
    """Puts a job into a slot, and into the state; -1 empties the slot."""
    shape, jobs, state = episodes.shape, episodes.jobs, episodes.state
    resources, jobset = shape.capacity.size, state.jobset[row]
    place = shape.slots_at + slot * (1 + resources)
    state.slots[row, slot] = job
    if job < 0:
        for i in range(place, place + 1 + resources):
            state.packed[row, i] = 0
        state.packed[row, shape.waited_at + slot] = 0
    else:
        waited = state.clock[row] - jobs.arrival[jobset, job]
        state.packed[row, shape.waited_at + slot] = min(waited, SATURATED)
        state.packed[row, place] = jobs.duration[jobset, job]
        for r in range(resources):
            state.packed[row, place + 1 + r] = jobs.demand[jobset, job, r]
    # A state shows classes only where there are several.
    if shape.num_classes > 1:
        shown = jobs.job_class[jobset, job] if job >= 0 else 0
        state.packed[row, shape.classes_at + slot] = shown


@njit_inlined
def _show_backlog(episodes: Episodes, row: int) -> None:
    """Writes the number of jobs in the backlog into the state."""
    state = episodes.state
    waiting = state.backlog_tail[row] - state.backlog_head[row]
    state.packed[row, episodes.shape.backlog_at] = min(waiting, SATURATED)


@njit_inlined
def _show_long_waits(episodes: Episodes, row: int) -> None:
    """Writes waits that a byte cannot tell apart: each keeps behind those that came before it."""
    shape, jobs, state = episodes.shape, episodes.jobs, episodes.state
    jobset = state.jobset[row]
    for slot in range(shape.num_slots):
        job = state.slots[row, slot]
        if job < 0:
            continue
        waited = state.clock[row] - jobs.arrival[jobset, job]
        if waited <= SATURATED - shape.num_slots:
            continue
        # One less for each job in a slot that came before.
        most = SATURATED
        for other in range(shape.num_slots):
            before = state.slots[row, other]
            if before >= 0 and jobs.arrival[jobset, before] < jobs.arrival[jobset, job]:
                most -= 1
        state.packed[row, shape.waited_at + slot] = min(waited, most)
