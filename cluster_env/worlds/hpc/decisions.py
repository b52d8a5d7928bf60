"""Decision by decision: when a policy is asked, what it may do, and what its reward is.

The same for one pool and for a site. Where these differ there are two functions, and the type of
the episode says which of them is meant (`njit_either`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import CostTable
from cluster_env.core.compiled import (
    FALSE,
    TRUE,
    new_records,
    njit_called_where,
    njit_either,
    njit_inlined,
    njit_kernel,
    reference,
)
from cluster_env.worlds.hpc.episodes import Rows, episode_of
from cluster_env.worlds.hpc.events import (
    NEVER,
    OPTIONS,
    Episode,
    Machine,
    begin_instant,
    came,
    expect_started,
    fits,
    is_overdue_at,
)
from cluster_env.worlds.hpc.instants import advance, clear, next_event
from cluster_env.worlds.hpc.jobs import Jobs
from cluster_env.worlds.hpc.queue import move_overdue
from cluster_env.worlds.hpc.reservations import begin_pass_in_pool, book_overdue, may_start_in_pool
from cluster_env.worlds.hpc.running import start
from cluster_env.worlds.hpc.site import deciding as at_site
from cluster_env.worlds.hpc.site import passes
from cluster_env.worlds.hpc.state import show

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

_NO_ACTIONS, _NO_REWARDS = np.zeros(0, np.int32), np.zeros(0)


def machine_of(world: Any) -> Machine:
    """An `HPC` as compiled code reads it."""
    options, layout = new_records(1, OPTIONS), world.layout
    places = ("jobs_at", "clock_at", "rows_at", "arrivals_at")
    for name in ("queue", "job_size", "horizon", "shows_classes", *places):
        options[name] = getattr(layout, name)
    for name in ("horizon_step", "max_time", "time_step", "every_step"):
        options[name] = getattr(world, name)
    options.scope, options.whole = REWARDS[world.reward]
    options.discount = world.reward_discount if world.reward == "options" else 1.0
    return Machine(np.asarray(world.capacity, np.int64), options)


@njit_inlined
def _charge_run(
    machine: Machine,
    jobs: Jobs,
    costs: CostTable,
    episode: Episode,
    job: int,
    finish: int,
    sign: int,
) -> None:
    """Charges what a job that runs now will have cost when it finishes then; it is known now.

    With sign -1 the charge is taken back.
    """
    status, max_time = episode.status[0], machine.options[0].max_time
    index, until = jobs.first[status.jobset] + job, min(finish, max_time)
    status.reward -= sign * _cost(costs, index, until - came(episode, job))
    if finish <= max_time:
        status.reward += sign * costs.finish_gain[index]
    if costs.utilization_gain != 0:
        inside = min(until, jobs.window[status.jobset]) - status.time
        share = 0.0
        for r in range(episode.free.size):
            share += episode.demand[job, r] / machine.capacity[r] / episode.free.size
        status.reward += sign * costs.utilization_gain * share * max(inside, 0)


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
    now, discount = status.time, options.discount
    # Those that wait, all or as many as the policy sees, and then those that run.
    head, tail = status.head, status.tail
    waiting, running = tail - head, status.running
    if options.scope == WINDOW:
        waiting, running = min(waiting, options.queue), np.int64(0)
    for k in range(waiting + running):
        job = episode.queue[head + k] if k < waiting else episode.running[k - waiting]
        index = first + job
        total = costs.rate[index] * _weight(now, until, began, discount)
        for late in range(costs.late_rate.shape[0]):
            after = came(episode, job) + costs.late_after[late, index]
            begin_late = max(now, after)
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


@njit_inlined
def _fits_in_pool(episode: Episode, place: int) -> bool:
    """Whether the job at a place of the queue fits beside what runs; `begin_pass` comes before."""
    return fits(episode.demand, np.int64(episode.queue[place]), episode.free)


@njit_inlined
def _fits_at_site(episode: Episode, place: int) -> bool:
    """Where a job is overdue, all count for how long users have asked."""
    bounded = is_overdue_at(episode, episode.status[0].head, episode.status[0].time)
    return at_site.may_start(episode, place, bounded)


@njit_inlined
def _waits_in_vain_in_pool(episode: Episode) -> bool:
    """Whether an empty machine may not wait; in a pool, all that wait fit."""
    return True


@njit_inlined
def _waits_in_vain_at_site(episode: Episode) -> bool:
    return bool(next_event(episode) == NEVER)


@njit_inlined
def _advance_in_pool(machine: Machine, jobs: Jobs, costs: CostTable, episode: Episode) -> None:
    """Lets all happen that happens now."""
    advance(episode, episode.status[0].time)


@njit_inlined
def _advance_at_site(machine: Machine, jobs: Jobs, costs: CostTable, episode: Episode) -> None:
    """Lets all happen that happens now; overdue jobs go before tiers, too.

    Runs that are cut short are charged anew.
    """
    site, status = episode.site, episode.status[0]
    cut, first = site.cut, site.cut.number[0]
    advance(episode, status.time)
    if episode.order.rule.max_wait > 0:
        move_overdue(episode, status.time)
    # A run was charged to its end when it began; a lost job has cost what it has until now.
    for k in range(first, min(cut.number[0], cut.place.size)):
        if machine.options[0].scope == AT_START:
            job = int(cut.place[k] - status.place)
            finish = cut.begin[k] + episode.jobs[job].duration
            _charge_run(machine, jobs, costs, episode, job, finish, -1)
            if site.lost[job]:
                _charge_run(machine, jobs, costs, episode, job, status.time, 1)


begin_pass = njit_either(begin_pass_in_pool, passes.begin_pass, "site")
fits_beside = njit_either(_fits_in_pool, _fits_at_site, "site")
_may_start = njit_either(may_start_in_pool, at_site.may_start, "site")
_book_overdue = njit_either(book_overdue, at_site.book_overdue, "site")
_waits_in_vain = njit_either(_waits_in_vain_in_pool, _waits_in_vain_at_site, "site")
_advance = njit_either(_advance_in_pool, _advance_at_site, "site", at=3)


@njit_called_where("site", at=1)
def _place(machine: Machine, episode: Episode, action: int) -> int:
    """Place in the queue of the job that an action starts, -1 for none.

    An action starts a job that is seen and may start; any other waits. Where jobs are overdue, the
    first of these that may start does so; else what delays none of them may.
    """
    status, now = episode.status[0], episode.status[0].time
    place = np.int64(status.head)
    bounded = is_overdue_at(episode, place, now)
    if bounded:
        expect_started(episode, now, TRUE)
    begin_pass(episode, bounded, now)
    if bounded:
        place = np.int64(_book_overdue(episode, place, now))
    starts = bounded and is_overdue_at(episode, place, now)
    if not starts:
        chosen = status.head + action
        last = min(status.head + machine.options[0].queue, status.tail)
        starts = place <= chosen < last and _may_start(episode, chosen, bounded)
        place = np.int64(chosen)
    if bounded:
        expect_started(episode, now, FALSE)
    return int(place if starts else np.int64(-1))


@njit_called_where("site", at=1)
def _first_that_fits(machine: Machine, episode: Episode) -> int:
    """Place of the first job that the policy sees and that fits; -1 if there is none."""
    status = episode.status[0]
    place, last = status.head, min(status.tail, status.head + machine.options[0].queue)
    begin_pass(episode, FALSE, status.time)
    while place < last and not fits_beside(episode, place):
        place += 1
    return int(place if place < last else np.int64(-1))


@njit_inlined
def _is_over(machine: Machine, episode: Episode) -> bool:
    """Whether nothing more happens, and there is nothing to decide."""
    over = next_event(episode) == NEVER
    return bool(
        over and not (machine.options[0].every_step and _first_that_fits(machine, episode) >= 0)
    )


def reset_rows(
    machine: Machine, jobs: Jobs, costs: CostTable, rows: Rows, which: NDArray[np.int32]
) -> None:
    """Puts episodes back to their first decision, see `step_rows`."""
    step_rows(machine, jobs, costs, rows, which, _NO_ACTIONS, _NO_REWARDS)


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
    """Takes one decision in each of some episodes; returns how many of them go on.

    Without actions, episodes are put back to their first decision: two kernels take longer to
    compile.
    """
    left, options, resets = 0, machine.options[0], actions.size == 0
    for k in range(which.size):
        row = np.int64(which[k])
        if not resets:
            rewards[k] = 0.0
            if not rows.status[row].active:
                continue
        episode = reference(episode_of(machine, jobs, rows, row, rows, row))
        status = episode.status[0]
        starts = goes_on = True
        if resets:
            clear(episode)
        else:
            place = _place(machine, episode, int(actions[k]))
            if place < 0 and status.running == 0 and _waits_in_vain(episode):
                place = _first_that_fits(machine, episode)
            starts = place >= 0
            if starts:
                job = np.int64(episode.queue[place])
                start(episode, place, status.time, np.int64(episode.jobs[job].estimate))
                if options.scope == AT_START:
                    finish = status.time + episode.jobs[job].duration
                    _charge_run(machine, jobs, costs, episode, job, finish, 1)
            # Time goes on if the policy waits, or has nothing more to decide now.
            goes_on = not starts or not (
                options.every_step or _first_that_fits(machine, episode) >= 0
            )
            if goes_on:
                status.decided = status.time
        if goes_on:
            _go_on(machine, jobs, costs, episode, starts)
            begin_instant(episode)
        if not resets:
            rewards[k], status.reward = status.reward, 0.0
        show(machine, episode, rows.states[row])
        left += status.active
    return left


@njit_inlined
def _go_on(machine: Machine, jobs: Jobs, costs: CostTable, episode: Episode, started: bool) -> None:
    """Lets events happen until the policy is to be asked again, or all is over.

    ``started`` says whether the policy has just started a job, and not waited.
    """
    status, options = episode.status[0], machine.options[0]
    first, began = jobs.first[status.jobset], status.time
    tick = began + options.time_step if options.time_step > 0 and not started else NEVER
    while not _is_over(machine, episode):
        coming = next_event(episode)
        now = min(coming, tick)
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
            status.time, status.truncated = options.max_time, True
            break
        status.time = now
        if coming == now:
            status.event = now
        _advance(machine, jobs, costs, episode)
        # The policy is asked at every step, or where it can start a job.
        if options.every_step and tick < NEVER:
            head, tail = status.head, status.tail
            if now == tick and (not _is_over(machine, episode) or tail > head):
                return
            continue
        if _first_that_fits(machine, episode) >= 0:
            return
        if now == tick:
            tick = NEVER
    status.active = False
    if options.scope == AT_START:
        head, tail = status.head, status.tail
        for place in range(head, tail):
            job = episode.queue[place]
            seconds = status.time - came(episode, job)
            status.reward -= _cost(costs, first + job, seconds)
