"""Episodes side by side, decision by decision: when a policy is asked, and what its reward is."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import CostTable
from cluster_env.core.compiled import new_records, njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import (
    AT_ARRIVAL,
    NEVER,
    OPTIONS,
    STATUS,
    Episode,
    Jobs,
    Machine,
    Records,
    advance,
    begin_instant,
    clear,
    fits,
    is_overdue_at,
    next_event,
)
from cluster_env.worlds.hpc.queue import start_waiting
from cluster_env.worlds.hpc.reservations import Plan, book_overdue, has_room, plan_running
from cluster_env.worlds.hpc.state import StateLayout, show

AT_START, SYSTEM, WINDOW = range(3)

REWARDS = {
    "at_start": (AT_START, True),
    "base": (SYSTEM, True),
    "sparse": (SYSTEM, False),
    "reduced": (WINDOW, False),
    "options": (WINDOW, True),
}
"""Whose cost counts, and whether all the time between two decisions does; see the docstring of
`cluster_env.worlds.hpc.world.HPC`."""


def machine_of(world: Any) -> Machine:
    """An `HPC` as compiled code reads it."""
    options, layout = new_records(1, OPTIONS), world.layout
    for name in ("queue", "horizon", "jobs_at", "clock_at", "rows_at", "arrivals_at"):
        options[name] = getattr(layout, name)
    for name in ("horizon_step", "max_time", "time_step", "every_step", "max_wait"):
        options[name] = getattr(world, name)
    options.scope, options.whole = REWARDS[world.reward]
    options.discount = world.reward_discount if world.reward == "options" else 1.0
    return Machine(np.asarray(world.capacity, np.int64), options)


class Rows(NamedTuple):
    """The episodes of a batch; what belongs to jobs stands one episode after the other."""

    start: NDArray[np.int64]  # (num_places,), see `Episode`, as all up to `expected_jobs`
    at_arrival: NDArray[np.int32]  # (num_places, 4), or of no place
    queue: NDArray[np.int32]
    widths: NDArray[np.int32]
    keys: NDArray[np.float64]  # of no place where no rule keeps its own order
    next_alike: NDArray[np.int32]  # of no place where each waiting job stands in the queue
    last_alike: NDArray[np.int32]
    ends: NDArray[np.int64]
    running: NDArray[np.int32]
    expected: NDArray[np.int64]
    expected_jobs: NDArray[np.int32]
    free: NDArray[np.int64]  # (num_rows, num_resources)
    spare: NDArray[np.int64]  # (num_rows, num_resources)
    usage: NDArray[np.float64]  # (num_rows, users), as many as the jobset with the most has
    status: Records  # (num_rows,), of `STATUS`
    states: NDArray[np.int32]  # (num_rows, state_size)

    @classmethod
    def of(
        cls,
        jobset: NDArray[np.integer],
        place: NDArray[np.int64],
        num_places: int,
        num_resources: int,
        users: int,
        layout: StateLayout | None = None,
        lines_up: bool = False,
    ) -> "Rows":
        """Episodes without a beginning, of a jobset and a place each, ``(num_rows,)``.

        There are as many users as in the jobset with the most. Without a layout episodes have no
        states, but a rule's own order; with `lines_up` jobs that are alike wait behind each other.
        """
        num_rows, num_ranked = jobset.size, num_places if layout is None else 0
        num_lines = num_places if lines_up else 0
        seen = num_places if layout is not None and layout.horizon else 0

        status = new_records(num_rows, STATUS)
        status.jobset, status.place = jobset, place
        return cls(
            start=np.full(num_places, -1, np.int64),
            at_arrival=np.zeros((seen, len(AT_ARRIVAL)), np.int32),
            queue=np.zeros(num_places, np.int32),
            widths=np.zeros(num_places, np.int32),
            keys=np.zeros(num_ranked, np.float64),
            next_alike=np.zeros(num_lines, np.int32),
            last_alike=np.zeros(num_lines, np.int32),
            ends=np.zeros(num_places, np.int64),
            running=np.zeros(num_places, np.int32),
            expected=np.zeros(num_places, np.int64),
            expected_jobs=np.zeros(num_places, np.int32),
            free=np.zeros((num_rows, num_resources), np.int64),
            spare=np.zeros((num_rows, num_resources), np.int64),
            usage=np.zeros((num_rows, users), np.float64),
            status=status,
            states=np.zeros((num_rows, 0 if layout is None else layout.size), np.int32),
        )


@njit_inlined
def episode_of(
    machine: Machine, jobs: Jobs, rows: Rows, row: int, scratch: Rows, place: int
) -> Episode:
    """The views of one episode, whose jobset and starts are in a row of all episodes.

    It is played in a place of ``scratch``, the same rows or others.
    """
    own, begin = rows.status[row], scratch.status[place].place
    first, start = jobs.first[own.jobset], own.place
    size = jobs.first[own.jobset + 1] - first
    last, end = first + size, begin + size
    return Episode(
        jobs.records[first:last],
        jobs.demand[first:last],
        rows.start[start : start + size],
        scratch.at_arrival[begin:end],
        scratch.queue[begin:end],
        scratch.widths[begin:end],
        scratch.keys[begin:end],
        scratch.next_alike[begin:end],
        scratch.last_alike[begin:end],
        scratch.ends[begin:end],
        scratch.running[begin:end],
        scratch.expected[begin:end],
        scratch.expected_jobs[begin:end],
        machine.capacity,
        scratch.free[place],
        scratch.spare[place],
        scratch.usage[place],
        scratch.status[place : place + 1],
    )


@njit_kernel
def reset_rows(
    machine: Machine, jobs: Jobs, costs: CostTable, rows: Rows, which: NDArray[np.int32]
) -> None:
    """Puts episodes back to their first decision."""
    for row in which:
        episode = episode_of(machine, jobs, rows, row, rows, row)
        clear(episode)
        _go_on(machine, jobs, costs, episode, True)
        begin_instant(episode)
        show(machine, episode, rows.states[row])


@njit_kernel
def step_rows(
    machine: Machine,
    jobs: Jobs,
    costs: CostTable,
    rows: Rows,
    which: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
    plan: Plan,
) -> int:
    """Takes one decision in each of some episodes; returns how many of them go on.

    The plan is room for that of overdue jobs.
    """
    left, options = 0, machine.options[0]
    for k in range(which.size):
        row = which[k]
        rewards[k] = 0.0
        if not rows.status[row].active:
            continue
        episode = episode_of(machine, jobs, rows, row, rows, row)
        status, action = episode.status[0], int(actions[k])
        if is_overdue_at(episode, status.head, status.time, options.max_wait):
            action = _bounded(machine, episode, plan, action)
        # An action starts a job that is seen and fits; any other waits.
        seen = min(options.queue, status.tail - status.head)
        starts = (
            action < seen
            and action >= 0
            and fits(episode.demand, episode.queue[status.head + action], episode.free)
        )
        if not starts and status.running == 0 and seen > 0:
            starts, action = True, 0  # an empty machine may not wait; everything fits
        if starts:
            job = episode.queue[status.head + action]
            start_waiting(episode, status.head + action, status.time)
            if options.scope == AT_START:
                _charge_start(machine, jobs, costs, episode, job)
        # Time goes on if the policy waits, or has nothing more to decide now.
        if not starts or not (options.every_step or _can_start(machine, episode)):
            status.decided = status.time
            _go_on(machine, jobs, costs, episode, starts)
            begin_instant(episode)
        rewards[k], status.reward = status.reward, 0.0
        show(machine, episode, rows.states[row])
        left += status.active
    return left


@njit_inlined
def _bounded(machine: Machine, episode: Episode, plan: Plan, action: int) -> int:
    """What becomes of an action where jobs are overdue; the queue is in order of arrival.

    The first of these that may start does so; else what delays none of them may.
    """
    options, status = machine.options[0], episode.status[0]
    plan_running(episode, plan, status.time)
    place = book_overdue(episode, plan, options.max_wait, status.head, status.time)
    if is_overdue_at(episode, place, status.time, options.max_wait):
        return int(place - status.head)
    if not place - status.head <= action < status.tail - status.head:
        return int(options.queue)
    job = episode.queue[status.head + action]
    seconds = episode.jobs[job].limit
    free = has_room(plan, episode.demand[job], seconds, status.time)
    return int(action) if free else int(options.queue)


@njit_inlined
def _can_start(machine: Machine, episode: Episode) -> bool:
    """Whether a job that the policy sees fits."""
    place = episode.status[0].head
    last = min(episode.status[0].tail, place + machine.options[0].queue)
    while place < last and not fits(episode.demand, episode.queue[place], episode.free):
        place += 1
    return bool(place < last)


@njit_inlined
def _go_on(machine: Machine, jobs: Jobs, costs: CostTable, episode: Episode, started: bool) -> None:
    """Lets events happen until the policy is to be asked again, or all is over.

    ``started`` says whether the policy has just started a job, and not waited.
    """
    status, options = episode.status[0], machine.options[0]
    num_jobs, first, began = episode.jobs.size, jobs.first[status.jobset], status.time
    tick = began + options.time_step if options.time_step > 0 and not started else NEVER
    while (
        status.coming < num_jobs
        or status.running > 0
        or (options.every_step and status.tail > status.head)
    ):
        now = min(next_event(episode), tick)
        # What time costs until then; where it is not whole, that of one step of it alone.
        until = min(now, options.max_time)
        if options.scope == AT_START:
            status.reward -= costs.busy_cost * (until - status.time)
        elif options.whole:
            _charge_time(machine, costs, first, episode, began, until)
        elif not started and status.time == began:
            step = min(until, began + max(options.time_step, 1))
            _charge_time(machine, costs, first, episode, began, step)
        # The end of the world's time: what waits has cost what it has.
        if now > options.max_time:
            status.time = options.max_time
            status.active, status.truncated = False, True
            if options.scope == AT_START:
                for place in range(status.head, status.tail):
                    job = episode.queue[place]
                    seconds = options.max_time - episode.jobs[job].arrival
                    status.reward -= _cost(costs, first + job, seconds)
            return
        status.time, first_new = now, status.coming
        advance(episode, now, True, True, True)
        for job in range(first_new, status.coming):
            _append(episode, job)
        # The policy is asked at every step, or where it can start a job.
        if options.every_step and tick < NEVER:
            left = status.coming < num_jobs or status.running > 0
            if now == tick and (left or status.tail > status.head):
                return
            continue
        if _can_start(machine, episode):
            return
        if now == tick:
            tick = NEVER
    status.active = False


@njit_inlined
def _append(episode: Episode, job: int) -> None:
    """Lets a job that has just come wait behind all others."""
    status, size = episode.status[0], episode.demand[job, 0]
    episode.queue[status.tail], episode.widths[status.tail] = job, size
    status.tail += 1
    status.narrowest = min(status.narrowest, np.int64(size))


@njit_inlined
def _charge_start(
    machine: Machine, jobs: Jobs, costs: CostTable, episode: Episode, job: int
) -> None:
    """Charges what a job that starts now will have cost when it is done; it is known now."""
    status, max_time = episode.status[0], machine.options[0].max_time
    index = jobs.first[status.jobset] + job
    finish = status.time + episode.jobs[job].duration
    until = min(finish, max_time)
    status.reward -= _cost(costs, index, until - episode.jobs[job].arrival)
    if finish <= max_time:
        status.reward += costs.finish_gain[index]
    if costs.utilization_gain != 0:
        inside = min(until, jobs.window[status.jobset]) - status.time
        share = 0.0
        for r in range(episode.free.size):
            share += episode.demand[job, r] / machine.capacity[r] / episode.free.size
        status.reward += costs.utilization_gain * share * max(inside, 0)


@njit_inlined
def _cost(costs: CostTable, index: int, seconds: int) -> float:
    """What a job costs that is in the system for so long."""
    total = costs.rate[index] * seconds
    for late in range(costs.late_rate.shape[0]):
        overtime = max(0, seconds - costs.late_after[late, index])
        total += costs.late_rate[late, index] * overtime
    return total


@njit_inlined
def _charge_time(
    machine: Machine, costs: CostTable, first: int, episode: Episode, began: int, until: int
) -> None:
    """Charges what jobs cost from the clock on, as long as nothing happens (eqs. 4.1 and 2.18)."""
    status, options = episode.status[0], machine.options[0]
    now, head, discount = status.time, status.head, options.discount
    # Those that wait, all or as many as the policy sees, and then those that run.
    waiting, running = status.tail - head, status.running
    if options.scope == WINDOW:
        waiting, running = min(waiting, options.queue), np.int64(0)
    for k in range(waiting + running):
        job = episode.queue[head + k] if k < waiting else episode.running[k - waiting]
        index = first + job
        total = costs.rate[index] * _weight(now, until, began, discount)
        for late in range(costs.late_rate.shape[0]):
            begin_late = max(now, episode.jobs[job].arrival + costs.late_after[late, index])
            seconds = _weight(begin_late, until, began, discount)
            total += costs.late_rate[late, index] * seconds
        status.reward -= total


@njit_inlined
def _weight(begin: int, end: int, origin: int, discount: float) -> float:
    """The sum of ``discount ** (t - origin)`` over the seconds t from begin to before end."""
    if end <= begin:
        return 0.0
    if discount == 1.0:
        return float(end - begin)
    first, last = discount ** float(begin - origin), discount ** float(end - origin)
    return (first - last) / (1.0 - discount)
