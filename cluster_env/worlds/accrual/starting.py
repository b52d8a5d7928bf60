"""Which waiting jobs start on free processors before anything is decided (section 4.1, step 1).

Best fit is the paper's. The other orders are from the literature on real-time systems, brought to
jobs of several processors: whatever of the order fits starts.

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
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.accrual.arrays import (
    BEST_FIT,
    DASA,
    DENSITY,
    EDF,
    LBESA,
    Jobs,
    Machine,
    Rows,
)
from cluster_env.worlds.accrual.running import begin_job, unit_at_end


@njit_inlined
def start_fitting(m: Machine, jobs: Jobs, order: int, rows: Rows, r: int) -> None:
    """Starts waiting jobs with all the processors that they ask for, until none fits."""
    if rows.of[r].num_waiting == 0:
        return
    planned = order >= DASA
    if planned:
        _plan(m, jobs, order, rows, r)
    while True:
        # One call for both, which compiles in half the time of two.
        if _start_one(jobs, EDF if planned else order, rows, r, planned):
            continue
        if not planned or rows.of[r].num_running > 0:
            return
        planned, order = False, DENSITY


@njit_inlined
def _start_one(jobs: Jobs, order: int, rows: Rows, r: int, planned: bool) -> bool:
    """Starts the first of the fitting jobs in the order, of all or of the planned ones."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    best, best_score, best_worth = -1, -np.inf, -np.inf
    for k in range(rows.of[r].num_waiting):
        job = rows.waiting[base + k]
        j = first + job
        if jobs.of[j].size > rows.of[r].free or (planned and not rows.work.planned[job]):
            continue
        if order == BEST_FIT and jobs.of[j].size < best_score:
            continue
        worth = _worth(jobs, rows, base, j, job, now)
        if order == BEST_FIT:
            score = float(jobs.of[j].size)
        elif order == EDF:
            score = -float(jobs.of[j].deadline)
        else:
            score = worth / rows.job[base + job].left
        if score > best_score or (score == best_score and worth > best_worth):
            best, best_score, best_worth = job, score, worth
    if best < 0:
        return False
    begin_job(jobs, rows, r, best, jobs.of[first + best].size)
    return True


@njit_inlined
def _worth(jobs: Jobs, rows: Rows, base: int, j: int, job: int, now: int) -> float:
    """Final utility of a waiting job that starts now with all its processors."""
    end = now - (-rows.job[base + job].left // jobs.of[j].size)
    return unit_at_end(jobs, j, end) * jobs.of[j].size * jobs.of[j].duration


@njit_inlined
def drop_expired(jobs: Jobs, rows: Rows, r: int) -> None:
    """Lets waiting jobs go that would be worth nothing even if they started now."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    kept = 0
    for k in range(rows.of[r].num_waiting):
        job = rows.waiting[base + k]
        if _worth(jobs, rows, base, first + job, job, now) > 0:
            rows.waiting[base + kept] = job
            kept += 1
    rows.of[r].num_waiting = kept


@njit_inlined
def _plan(m: Machine, jobs: Jobs, order: int, rows: Rows, r: int) -> None:
    """Writes into `Work.planned` which of the waiting jobs are not shed, a number for each job."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    planned, density, deadline = rows.work.planned, rows.work.urgency, rows.work.weights
    by_deadline, by_density = rows.work.soonest, rows.work.order
    count = 0
    for k in range(rows.of[r].num_waiting):
        job = rows.waiting[base + k]
        planned[job] = 0
        worth = _worth(jobs, rows, base, first + job, job, now)
        if worth > 0:
            rows.work.held[count] = job
            density[count] = worth / rows.job[base + job].left
            deadline[count] = jobs.of[first + job].deadline
            planned[job] = order == LBESA
            count += 1
    candidates = rows.work.held[:count]
    _sort(deadline, 1.0, by_deadline, count)
    _sort(density, -1.0, by_density, count)
    busy = 0
    for k in range(rows.of[r].num_running):
        at = base + rows.running[r, k]
        busy += rows.job[at].left - rows.job[at].held * (now - rows.job[at].since)
    for k in range(count):
        if order == DASA:
            planned[candidates[by_density[k]]] = 1
        late = _first_late(m, jobs, rows, r, busy, count)
        if late < 0 and order == LBESA:
            break
        if late >= 0 and order == DASA:
            planned[candidates[by_density[k]]] = 0
        if late >= 0 and order == LBESA:
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


@njit_inlined
def _first_late(m: Machine, jobs: Jobs, rows: Rows, r: int, busy: int, count: int) -> int:
    """Place, in order of deadlines, of the first planned job that comes too late; -1 if none."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    work = busy
    for place in range(count):
        job = rows.work.held[rows.work.soonest[place]]
        if not rows.work.planned[job]:
            continue
        work += rows.job[base + job].left
        if work > m.processors * (jobs.of[first + job].deadline - now):
            return place
    return -1
