"""Which jobs get free processors before anything is decided (section 4.1, step 1; section 4.2).

Squeezed jobs get processors back, and waiting jobs start that fit. Best fit is the paper's order.
The others are from the literature on real-time systems, brought to jobs of several processors:
whatever of the order fits starts.

* ``edf``: earliest deadline first (Liu and Layland, 1973); the deadline is the clock from which a
  job is worth nothing.
* ``density``: highest final utility over the work that is left first.
* ``dasa``: jobs join a plan by falling density, as long as the plan stays feasible; those of the
  plan start by deadline (Clark, 1990, for jobs that depend on nothing).
* ``lbesa``: all that can still gain something is planned by deadline; while the plan is not
  feasible, the job of the least density before the first one that is late is shed (after Locke,
  1986).

A plan is feasible if, for each of its deadlines, the work that is due by then, with all that runs,
is no more than the processors can do until then: a bound of fluid work, which says nothing of how
jobs fit beside each other. Where nothing would run, the densest of the others start, so that no
machine stands idle before a queue.

Where several machines have one queue, they start jobs one after the other; with
``allocation="job"`` and best fit, each job, in order of arrival, finds the machine that it fits
best (section 4.2).
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.accrual.events import (
    NEVER,
    final_utility,
    hold,
    in_turn,
    is_lower,
    preempt_lower,
    record_progress,
    remaining_utility,
    start_job,
    steps_on,
    unit_utility_at,
)
from cluster_env.worlds.accrual.state import Pool, Server, server_of

ORDERS = ("best_fit", "edf", "density", "dasa", "lbesa")
BEST_FIT, EDF, DENSITY, DASA, LBESA = range(len(ORDERS))

ALLOCATIONS = ("machine", "job")
"""What is fixed while the other is chosen by best fit."""


@njit_inlined
def allocate(pool: Pool, first: int, last: int) -> None:
    """Gives the free processors of machines ``first`` to ``last`` - 1 to jobs of the project.

    These are all of them when an instant begins, and one after it has preempted or squeezed jobs.
    """
    options, several = pool.options, last - first > 1
    # Jobs of no value go; a single machine looks for them only when it can start others.
    if options.drop_expired and (several or server_of(pool, first).machine.free > 0):
        drop_expired(pool)
    # Where each job looks for a machine, no job is left that fits when machines look for jobs.
    if several and options.by_job and pool.episode.order == BEST_FIT:
        for number in range(first, last):
            grow_jobs(server_of(pool, number))
        fit_jobs(pool)
    # Machines do this one after the other, which comes to the same as if all of them let jobs grow
    # before the first one starts any.
    for number in range(first, last):
        server = server_of(pool, number)
        if server.machine.free > 0:
            grow_jobs(server)
            start_fitting(server)


@njit_inlined
def grow_jobs(server: Server) -> None:
    """Gives free processors to squeezed jobs, one job after the other."""
    pool, machine = server.pool, server.machine
    while machine.free > 0:
        # The squeezed job of the highest remaining utility.
        best, best_score = -1, -np.inf
        for k in range(machine.num_running):
            job = server.running[k]
            missing = pool.jobs[job].width - pool.progress[job].held
            if missing <= 0 or not in_turn(pool, job):
                continue
            score = remaining_utility(pool, job)
            if score > best_score:
                best, best_score = job, score
        if best < 0:
            return
        # It gets all that it misses, or all that is free.
        record_progress(server, best)
        held = pool.progress[best].held
        more = min(machine.free, pool.jobs[best].width - held)
        preempt_lower(server, more)
        hold(pool, best, held + more)
        machine.free -= more


@njit_inlined
def drop_expired(pool: Pool) -> None:
    """Lets waiting jobs go that would be worth nothing even if they started now."""
    kept = 0
    for k in range(pool.episode.num_waiting):
        job = pool.waiting[k]
        if not in_turn(pool, job) or utility_now(pool, job) > 0:
            pool.waiting[kept] = job
            kept += 1
    pool.episode.num_waiting = kept


@njit_inlined
def utility_now(pool: Pool, job: int) -> float:
    """Final utility of a waiting job that starts now with all its processors."""
    end = pool.episode.time + steps_on(pool, job, pool.jobs[job].width)
    return final_utility(pool, job, unit_utility_at(pool, job, end))


@njit_inlined
def fit_jobs(pool: Pool) -> None:
    """Starts each waiting job that fits anywhere where the fewest processors stay idle."""
    k = 0
    while k < pool.episode.num_waiting:
        job = pool.waiting[k]
        if not in_turn(pool, job):
            k += 1
            continue
        size = pool.jobs[job].width
        # The machine that it fits best, of equal ones the first.
        best, least = -1, NEVER
        for number in range(pool.options.machines):
            free = server_of(pool, number).machine.free
            if size <= free < least:
                best, least = number, free
        if best < 0:
            k += 1
        else:  # the next job moves up to the same place of the queue
            start_job(server_of(pool, best), job, size)


@njit_inlined
def start_fitting(server: Server) -> None:
    """Starts waiting jobs on a machine, on all that they ask for, until none fits."""
    pool, episode, machine = server.pool, server.pool.episode, server.machine
    if episode.num_waiting == 0:
        return
    order = episode.order
    planned = order >= DASA
    if planned:
        plan_jobs(pool)
        order = EDF
    while True:
        # The first of the fitting jobs in the order, of all or of the planned ones; of equal ones
        # that of the highest final utility.
        best, best_score = -1, -np.inf
        for k in range(episode.num_waiting):
            job = pool.waiting[k]
            size = pool.jobs[job].width
            if size > machine.free or not in_turn(pool, job):
                continue
            if planned and not pool.scratch.planned[job]:
                continue
            if order == BEST_FIT:
                score = float(size)
            elif order == EDF:
                score = -float(pool.jobs[job].deadline)
            else:
                score = utility_now(pool, job) / pool.progress[job].work_left
            if score > best_score or (
                score == best_score and utility_now(pool, job) > utility_now(pool, best)
            ):
                best, best_score = job, score
        if best >= 0:
            start_job(server, best, pool.jobs[best].width)
        elif planned and machine.free == pool.options.processors:
            planned, order = False, DENSITY  # rather others than none
        else:
            return


@njit_inlined
def plan_jobs(pool: Pool) -> None:
    """Writes into `Scratch.planned` which waiting jobs are not shed, a number for each job."""
    options, now, order = pool.options, pool.episode.time, pool.episode.order
    candidates, planned = pool.scratch.held, pool.scratch.planned
    density, deadline = pool.scratch.urgency, pool.scratch.weights
    by_deadline, by_density = pool.scratch.soonest, pool.scratch.order
    # Only what can still gain something is a candidate; LBESA begins with all of them planned.
    count = 0
    for k in range(pool.episode.num_waiting):
        job = pool.waiting[k]
        if not in_turn(pool, job):
            continue
        planned[job] = 0
        utility = utility_now(pool, job)
        if utility > 0:
            candidates[count] = job
            density[count] = utility / pool.progress[job].work_left
            deadline[count] = pool.jobs[job].deadline
            planned[job] = order == LBESA
            count += 1
    _sort(deadline, 1.0, by_deadline, count)
    _sort(density, -1.0, by_density, count)
    # Work that running jobs still have comes before all deadlines.
    running = 0
    for number in range(options.machines):
        server = server_of(pool, number)
        for k in range(server.machine.num_running):
            if is_lower(pool, server.running[k]):
                continue
            progress = pool.progress[server.running[k]]
            running += progress.work_left - progress.held * (now - progress.since)
    processors = options.processors * options.machines
    for k in range(count):
        # DASA tries one job more, the densest of the others.
        newest = candidates[by_density[k]]
        if order == DASA:
            planned[newest] = 1
        # The first planned job by deadline that comes too late, if one does.
        late, work = -1, running
        for i in range(count):
            job = candidates[by_deadline[i]]
            if planned[job]:
                work += pool.progress[job].work_left
                if work > processors * (pool.jobs[job].deadline - now):
                    late = i
                    break
        # DASA takes its job back; LBESA sheds the least dense one up to there.
        if order == DASA and late >= 0:
            planned[newest] = 0
        elif order == LBESA and late < 0:
            break
        elif order == LBESA:
            shed = -1
            for i in by_deadline[: late + 1]:
                if planned[candidates[i]] and (shed < 0 or density[i] < density[shed]):
                    shed = i
            planned[candidates[shed]] = 0


@njit_inlined
def _sort(values: NDArray[np.float64], sign: float, order: NDArray[np.int64], count: int) -> None:
    """Writes the places of the first values by rising value times the sign; stable."""
    for k in range(count):
        i = k
        while i > 0 and sign * values[order[i - 1]] > sign * values[k]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = k
