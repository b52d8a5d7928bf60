"""Episodes decision by decision, as compiled code."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import CostTable
from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import Jobs, fits, forget, pop, raise_outlived, reserve
from cluster_env.worlds.hpc.horizon import note_arrival_state, show_horizon
from cluster_env.worlds.hpc.mdp import AT_START, SYSTEM
from cluster_env.worlds.hpc.passes import HEAD, RUNNING, TAIL, Episode, Plan, begin
from cluster_env.worlds.hpc.state import RECENT

# Columns of `Rows.sums`.
QUEUE_LOG, QUEUE_WORK, RUN_LOG, RUN_WORK, RUN_SIZE = range(5)
LOG, LOG_SQUARE, AREA, AREA_SQUARE, GAP, LAST_ARRIVAL, ARRIVED, OWED, LOAD_AREA, LOAD_GAP = range(
    5, 15
)
NUM_SUMS = 15

_NEVER = 2**62
_LARGEST = 2**31 - 1


class Rows(NamedTuple):
    """The states of all episodes; those of jobs stand one episode after the other."""

    jobset: NDArray[np.int32]  # (num_rows,)
    place: NDArray[np.int64]  # (num_rows,), where an episode's jobs begin
    start: NDArray[np.int64]  # (places,), as the next six
    queue: NDArray[np.int32]
    ends: NDArray[np.int64]
    running: NDArray[np.int32]
    expected: NDArray[np.int64]
    expected_jobs: NDArray[np.int32]
    at_arrival: NDArray[np.int32]  # (places, 4), of no place where the world has no horizon
    sizes: NDArray[np.int64]  # (num_rows, 4)
    free: NDArray[np.int64]  # (num_rows, num_resources)
    spare: NDArray[np.int64]  # (num_rows, num_resources), beside the oldest at its reservation
    time: NDArray[np.int64]  # (num_rows,)
    coming: NDArray[np.int64]  # (num_rows,), the next job to arrive
    sums: NDArray[np.float64]  # (num_rows, NUM_SUMS)
    active: NDArray[np.bool_]  # (num_rows,)
    truncated: NDArray[np.bool_]  # (num_rows,)
    states: NDArray[np.int32]  # (num_rows, state_size)


class Machine(NamedTuple):
    """The world."""

    capacity: NDArray[np.int64]  # (num_resources,)
    queue: int
    jobs_at: int
    max_time: int
    time_step: int  # as all that follows, see `cluster_env.worlds.hpc.mdp`
    every_step: bool
    scope: int
    whole: bool
    discount: float
    horizon: int  # rows, see `cluster_env.worlds.hpc.state.CLOCK`
    horizon_step: int  # seconds from row to row
    clock_at: int
    arrivals_at: int


@njit_kernel
def reset_rows(
    machine: Machine, jobs: Jobs, costs: CostTable, rows: Rows, which: NDArray[np.int32]
) -> None:
    """Puts episodes back to their first decision."""
    for e in which:
        it = _episode(machine, jobs, rows, e)
        for job in range(it.start.size):
            it.start[job] = -1
        for r in range(it.free.size):
            it.free[r] = machine.capacity[r]
        for k in range(it.sizes.size):
            it.sizes[k] = 0
        rows.time[e] = rows.coming[e] = 0
        for k in range(NUM_SUMS):
            rows.sums[e, k] = 0.0
        rows.active[e], rows.truncated[e] = True, False
        _advance(machine, jobs, costs, rows, e, it, True)
        _show(machine, costs, jobs, rows, e, it)


@njit_kernel
def step_rows(
    machine: Machine,
    jobs: Jobs,
    costs: CostTable,
    rows: Rows,
    which: NDArray[np.int32],
    actions: NDArray[np.int32],
    rewards: NDArray[np.float64],
) -> int:
    """Takes one decision in each of some episodes; returns how many of them go on."""
    left = 0
    for k in range(which.size):
        e = which[k]
        rewards[k] = 0.0
        if not rows.active[e]:
            continue
        it = _episode(machine, jobs, rows, e)
        seen = min(machine.queue, it.sizes[TAIL] - it.sizes[HEAD])
        action = int(actions[k])
        chosen = (
            action < seen
            and action >= 0
            and fits(it.demand, it.queue[it.sizes[HEAD] + action], it.free)
        )
        if not chosen and it.sizes[RUNNING] == 0 and seen > 0:
            chosen, action = True, 0  # an empty machine may not wait; everything fits
        if chosen:
            _start(machine, jobs, costs, rows, e, it, action)
        if not chosen or not (machine.every_step or _can_start(machine, it)):
            _advance(machine, jobs, costs, rows, e, it, chosen)
        rewards[k] = rows.sums[e, OWED]
        rows.sums[e, OWED] = 0.0
        _show(machine, costs, jobs, rows, e, it)
        left += rows.active[e]
    return left


@njit_inlined
def _episode(machine: Machine, jobs: Jobs, rows: Rows, e: int) -> Episode:
    """An episode's own arrays; those that only whole rules need are empty."""
    k = rows.jobset[e]
    first, last = jobs.first[k], jobs.first[k + 1]
    begin_at = rows.place[e]
    end_at = begin_at + last - first
    floats = rows.sums[e, :0]
    integers = rows.time[:0]
    return Episode(
        jobs.arrival[first:last],
        jobs.duration[first:last],
        jobs.order_estimate[first:last],
        jobs.estimate[first:last],
        jobs.limit[first:last],
        jobs.demand[first:last],
        floats,
        integers,
        jobs.arrival[:0],
        machine.capacity,
        rows.free[e],
        rows.spare[e],
        floats,
        floats,
        rows.start[begin_at:end_at],
        rows.queue[begin_at:end_at],
        floats,
        jobs.arrival[:0],
        rows.ends[begin_at:end_at],
        rows.running[begin_at:end_at],
        rows.expected[begin_at:end_at],
        rows.expected_jobs[begin_at:end_at],
        rows.sizes[e],
        Plan(integers, integers, jobs.arrival[:0], integers, rows.free[:0], integers),
    )


@njit_inlined
def _can_start(machine: Machine, it: Episode) -> bool:
    """Whether a job that the policy sees fits."""
    head = it.sizes[HEAD]
    last = min(it.sizes[TAIL], head + machine.queue)
    place = head
    while place < last and not fits(it.demand, it.queue[place], it.free):
        place += 1
    return bool(place < last)


@njit_inlined
def _start(
    machine: Machine, jobs: Jobs, costs: CostTable, rows: Rows, e: int, it: Episode, slot: int
) -> None:
    """Starts the job of a slot, and charges what it will have cost when it is done."""
    head = it.sizes[HEAD]
    job = it.queue[head + slot]
    for place in range(head + slot, head, -1):
        it.queue[place] = it.queue[place - 1]
    it.sizes[HEAD] = head + 1
    now = rows.time[e]
    begin(it, job, now, True)
    index = jobs.first[rows.jobset[e]] + job
    sums, size = rows.sums[e], it.demand[job, 0]
    sums[QUEUE_LOG] -= jobs.log[index]
    sums[QUEUE_WORK] -= float(it.order_estimate[job]) * size
    sums[RUN_LOG] += jobs.log[index]
    sums[RUN_WORK] += float(now + it.estimate[job]) * size
    sums[RUN_SIZE] += size
    if machine.scope != AT_START:
        return
    finish = now + it.duration[job]
    until = min(finish, machine.max_time)
    sums[OWED] -= _cost(costs, index, until - it.arrival[job])
    if finish <= machine.max_time:
        sums[OWED] += costs.finish_gain[index]
    if costs.utilization_gain != 0:
        inside = min(until, jobs.window[rows.jobset[e]]) - now
        share = 0.0
        for r in range(it.free.size):
            share += it.demand[job, r] / machine.capacity[r] / it.free.size
        sums[OWED] += costs.utilization_gain * share * max(inside, 0)


@njit_inlined
def _cost(costs: CostTable, index: int, seconds: int) -> float:
    """What a job costs that is in the system for so long."""
    total = costs.rate[index] * seconds
    for k in range(costs.late_rate.shape[0]):
        total += costs.late_rate[k, index] * max(0, seconds - costs.late_after[k, index])
    return total


@njit_inlined
def _advance(
    machine: Machine, jobs: Jobs, costs: CostTable, rows: Rows, e: int, it: Episode, started: bool
) -> None:
    """Lets events happen until the policy is to be asked again, or all is over."""
    num_jobs, sums = it.arrival.size, rows.sums[e]
    began = rows.time[e]
    tick = began + machine.time_step if machine.time_step > 0 and not started else _NEVER
    while (
        rows.coming[e] < num_jobs
        or it.sizes[RUNNING] > 0
        or (machine.every_step and it.sizes[TAIL] > it.sizes[HEAD])
    ):
        now = np.int64(it.arrival[rows.coming[e]]) if rows.coming[e] < num_jobs else _NEVER
        if it.sizes[RUNNING] > 0:
            now = min(now, it.ends[0])
        now = min(now, tick)
        until = min(now, machine.max_time)
        if machine.scope == AT_START:
            sums[OWED] -= costs.busy_cost * (until - rows.time[e])
        elif machine.whole:
            _charge(machine, jobs, costs, rows, e, it, began, until)
        elif not started and rows.time[e] == began:  # one step of the time between two decisions
            step = min(until, began + max(machine.time_step, 1))
            _charge(machine, jobs, costs, rows, e, it, began, step)
        if now > machine.max_time:
            _cut(machine, jobs, costs, rows, e, it)
            return
        rows.time[e] = now
        while it.sizes[RUNNING] > 0 and it.ends[0] == now:
            job = pop(it.ends, it.running, it.sizes[RUNNING])
            planned = forget(it.expected, it.expected_jobs, it.sizes[RUNNING], job)
            it.sizes[RUNNING] -= 1
            sums[RUN_LOG] -= jobs.log[jobs.first[rows.jobset[e]] + job]
            sums[RUN_WORK] -= float(planned) * it.demand[job, 0]
            sums[RUN_SIZE] -= it.demand[job, 0]
            for r in range(it.free.size):
                it.free[r] += it.demand[job, r]
        count = it.sizes[RUNNING]
        if count > 0 and it.expected[count - 1] <= now:
            sums[RUN_WORK] += raise_outlived(
                it.expected, it.expected_jobs, count, now, it.start, it.limit, it.demand
            )
        while rows.coming[e] < num_jobs and it.arrival[rows.coming[e]] == now:
            job = rows.coming[e]
            if machine.horizon > 0:
                note_arrival_state(
                    rows.at_arrival[rows.place[e] + job],
                    it.sizes[TAIL] - it.sizes[HEAD],
                    sums[QUEUE_WORK],
                    it.free[0],
                    sums[RUN_WORK] - now * sums[RUN_SIZE],
                )
            it.queue[it.sizes[TAIL]] = job
            it.sizes[TAIL] += 1
            rows.coming[e] = job + 1
            note_arrival(
                sums,
                now,
                it.order_estimate[job],
                it.demand[job, 0],
                jobs.log[jobs.first[rows.jobset[e]] + job],
            )
        if machine.every_step and tick < _NEVER:
            left = rows.coming[e] < num_jobs or it.sizes[RUNNING] > 0
            if now == tick and (left or it.sizes[TAIL] > it.sizes[HEAD]):
                return
            continue
        if _can_start(machine, it):
            return
        if now == tick:
            tick = _NEVER
    rows.active[e] = False


@njit_inlined
def _charge(
    machine: Machine,
    jobs: Jobs,
    costs: CostTable,
    rows: Rows,
    e: int,
    it: Episode,
    began: int,
    until: int,
) -> None:
    """Charges what jobs cost from the clock on, as long as nothing happens (eqs. 4.1 and 2.18)."""
    first, now = jobs.first[rows.jobset[e]], rows.time[e]
    head, tail = it.sizes[HEAD], it.sizes[TAIL]
    last = tail if machine.scope == SYSTEM else min(tail, head + machine.queue)
    running = it.sizes[RUNNING] if machine.scope == SYSTEM else 0
    for k in range(last - head + running):
        job = it.queue[head + k] if k < last - head else it.running[k - last + head]
        index = first + job
        total = costs.rate[index] * _weight(now, until, began, machine.discount)
        for late in range(costs.late_rate.shape[0]):
            begin_late = max(now, it.arrival[job] + costs.late_after[late, index])
            seconds = _weight(begin_late, until, began, machine.discount)
            total += costs.late_rate[late, index] * seconds
        rows.sums[e, OWED] -= total


@njit_inlined
def _weight(begin: int, end: int, origin: int, discount: float) -> float:
    """The sum of ``discount ** (t - origin)`` over the seconds t from begin to before end."""
    if end <= begin:
        return 0.0
    if discount == 1.0:
        return float(end - begin)
    first, last = discount ** float(begin - origin), discount ** float(end - origin)
    return (first - last) / (1.0 - discount)


@njit_inlined
def _cut(machine: Machine, jobs: Jobs, costs: CostTable, rows: Rows, e: int, it: Episode) -> None:
    """Ends an episode at the world's end of time; what waits has cost what it has."""
    rows.time[e] = machine.max_time
    rows.active[e], rows.truncated[e] = False, True
    if machine.scope != AT_START:
        return
    for place in range(it.sizes[HEAD], it.sizes[TAIL]):
        job = it.queue[place]
        index = jobs.first[rows.jobset[e]] + job
        rows.sums[e, OWED] -= _cost(costs, index, machine.max_time - it.arrival[job])


@njit_inlined
def note_arrival(sums: NDArray[np.float64], now: int, estimate: int, size: int, log: float) -> None:
    """Brings the sums over the queue and the recent means up to date."""
    sums[QUEUE_LOG] += log
    sums[QUEUE_WORK] += float(estimate) * size
    sums[ARRIVED] += 1
    gap = now - sums[LAST_ARRIVAL] if sums[ARRIVED] > 1 else 0.0
    share = 1.0 / min(sums[ARRIVED], float(RECENT))
    area = log + math.log(size)
    for column, value in (
        (LOG, log),
        (LOG_SQUARE, log * log),
        (AREA, area),
        (AREA_SQUARE, area * area),
        (GAP, math.log(1.0 + gap)),
        (LOAD_AREA, float(estimate) * size),
        (LOAD_GAP, gap),
    ):
        sums[column] += share * (value - sums[column])
    sums[LAST_ARRIVAL] = now


@njit_inlined
def _show(machine: Machine, costs: CostTable, jobs: Jobs, rows: Rows, e: int, it: Episode) -> None:
    """Writes the state of an episode; see `state.HEADER`."""
    out, sums, now = rows.states[e], rows.sums[e], rows.time[e]
    head, waiting, running = it.sizes[HEAD], it.sizes[TAIL] - it.sizes[HEAD], it.sizes[RUNNING]
    processors = float(machine.capacity[0])
    for k in range(out.size):
        out[k] = 0
    out[0], out[1] = waiting, running
    if running > 0:
        out[2] = _whole(max(it.expected[running - 1] - now, 1))
        out[6] = _whole(max(sums[RUN_WORK] - now * sums[RUN_SIZE], 0.0) / processors)
        out[8] = _whole(1000 * sums[RUN_LOG] / running)
    if waiting > 0:
        oldest = it.queue[head]
        if fits(it.demand, oldest, it.free):
            out[4] = it.free[0] - it.demand[oldest, 0]
        else:
            shadow = reserve(
                it.expected, it.expected_jobs, running, it.demand, oldest, now, it.free, it.spare
            )
            out[3], out[4] = _whole(shadow - now), it.spare[0]
        out[5] = _whole(max(sums[QUEUE_WORK], 0.0) / processors)
        out[7] = _whole(1000 * sums[QUEUE_LOG] / waiting)
    out[9] = _whole(1000 * sums[LOG])
    out[10] = _whole(1000 * math.sqrt(max(sums[LOG_SQUARE] - sums[LOG] ** 2, 0.0)))
    out[11] = _whole(1000 * sums[AREA])
    out[12] = _whole(1000 * math.sqrt(max(sums[AREA_SQUARE] - sums[AREA] ** 2, 0.0)))
    out[13] = _whole(1000 * sums[GAP])
    load = sums[LOAD_AREA] / processors / max(sums[LOAD_GAP], 1.0)
    out[14] = _whole(1000 * math.log(max(load, 1e-6)))
    for r in range(it.free.size):
        out[machine.jobs_at - it.free.size + r] = it.free[r]
    place = machine.jobs_at
    for slot in range(min(waiting, machine.queue)):
        job = it.queue[head + slot]
        out[place], out[place + 1] = it.order_estimate[job], now - it.arrival[job]
        for r in range(it.free.size):
            out[place + 2 + r] = it.demand[job, r]
        place += 2 + it.free.size
        if machine.horizon > 0:
            for k in range(4):
                out[machine.arrivals_at + 4 * slot + k] = rows.at_arrival[rows.place[e] + job, k]
    if machine.horizon > 0:
        remaining = sums[RUN_WORK] - now * sums[RUN_SIZE]
        at = machine.clock_at
        show_horizon(out[at:], machine.horizon, machine.horizon_step, it, now, remaining)


@njit_inlined
def _whole(value: float) -> int:
    return int(min(max(round(value), -_LARGEST), _LARGEST))
