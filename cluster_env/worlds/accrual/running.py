"""What happens to running jobs: they start, get processors back, are preempted, and finish."""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.objectives.utility import unit_utility
from cluster_env.worlds.accrual.arrays import (
    BY_ARRIVAL,
    BY_UTILITY,
    Costs,
    Jobs,
    Machine,
    Rows,
)

_NEVER = 2**62


@njit_inlined
def unit_at_end(jobs: Jobs, j: int, end: int) -> float:
    """Unit utility of job ``j`` of all if it finished at a clock."""
    return unit_utility(jobs.tuf[j], end - jobs.of[j].arrival, jobs.of[j].duration)


@njit_inlined
def hold(jobs: Jobs, rows: Rows, r: int, job: int, processors: int) -> None:
    """Gives a job so many processors from now on, and says when it will finish on them."""
    at, j = rows.of[r].place + job, rows.of[r].first + job
    end = rows.of[r].time - (-rows.job[at].left // processors)
    rows.job[at].held, rows.job[at].since = processors, rows.of[r].time
    rows.job[at].end, rows.job[at].unit = end, unit_at_end(jobs, j, end)


@njit_inlined
def begin_job(jobs: Jobs, rows: Rows, r: int, job: int, processors: int) -> None:
    """Starts or resumes a waiting job; the place in the queue is closed."""
    base = rows.of[r].place
    at = base + job
    hold(jobs, rows, r, job, processors)
    if rows.job[at].start < 0:
        rows.job[at].start = rows.of[r].time
    rows.of[r].free -= processors
    rows.running[r, rows.of[r].num_running] = job
    rows.of[r].num_running += 1
    k = 0
    while rows.waiting[base + k] != job:
        k += 1
    rows.of[r].num_waiting -= 1
    for i in range(k, rows.of[r].num_waiting):
        rows.waiting[base + i] = rows.waiting[base + i + 1]
    rows.of[r].changed = True


@njit_inlined
def enqueue(rows: Rows, r: int, job: int) -> None:
    """Puts a job into the queue, which stays in order of arrival."""
    base = rows.of[r].place
    k = rows.of[r].num_waiting
    while k > 0 and rows.waiting[base + k - 1] > job:
        rows.waiting[base + k] = rows.waiting[base + k - 1]
        k -= 1
    rows.waiting[base + k] = job
    rows.of[r].num_waiting += 1


@njit_inlined
def settle_work(m: Machine, costs: Costs, rows: Rows, r: int, job: int) -> None:
    """Writes down what a running job has done on its processors, up to now.

    The clock is whole: in its last step a squeezed job may need fewer processors than it holds, and
    only those that it needs count as used.
    """
    at = rows.of[r].place + job
    steps = rows.of[r].time - rows.job[at].since
    if steps == 0:
        return
    done = rows.job[at].held * steps
    spare = done - rows.job[at].left
    if spare > 0:
        _write_piece(
            m, costs, rows, r, job, rows.job[at].since, rows.of[r].time - 1, rows.job[at].held
        )
        _write_piece(
            m, costs, rows, r, job, rows.of[r].time - 1, rows.of[r].time, rows.job[at].held - spare
        )
        done = rows.job[at].left
    else:
        _write_piece(m, costs, rows, r, job, rows.job[at].since, rows.of[r].time, rows.job[at].held)
    rows.job[at].left -= done
    rows.job[at].since = rows.of[r].time


@njit_inlined
def _write_piece(
    m: Machine, costs: Costs, rows: Rows, r: int, job: int, begin: int, end: int, units: int
) -> None:
    if end == begin:
        return
    piece = rows.pieces[r, rows.of[r].num_pieces]
    piece[0], piece[1], piece[2], piece[3] = job, begin, end, units
    rows.of[r].num_pieces += 1
    rows.of[r].busy += (end - begin) * units
    window = rows.of[r].window
    inside = min(end, window) - min(begin, window)
    rows.of[r].owed += costs.utilization_gain * inside * units / m.processors


@njit_inlined
def preempt_job(m: Machine, costs: Costs, rows: Rows, r: int, job: int) -> None:
    """Puts a running job back into the queue; it keeps what it has done."""
    settle_work(m, costs, rows, r, job)
    at = rows.of[r].place + job
    rows.of[r].free += rows.job[at].held
    rows.job[at].held = 0
    k = 0
    while rows.running[r, k] != job:
        k += 1
    rows.of[r].num_running -= 1
    for i in range(k, rows.of[r].num_running):
        rows.running[r, i] = rows.running[r, i + 1]
    enqueue(rows, r, job)


@njit_inlined
def next_finish(rows: Rows, r: int) -> int:
    """Clock of the next finish; a very large number if nothing runs."""
    first = _NEVER
    for k in range(rows.of[r].num_running):
        first = min(first, rows.job[rows.of[r].place + rows.running[r, k]].end)
    return first


@njit_inlined
def finish_jobs(m: Machine, jobs: Jobs, costs: Costs, rows: Rows, r: int) -> None:
    """Lets the running jobs finish whose work is done now."""
    base, now = rows.of[r].place, rows.of[r].time
    kept = 0
    for k in range(rows.of[r].num_running):
        job = rows.running[r, k]
        at = base + job
        if rows.job[at].end > now:
            rows.running[r, kept] = job
            kept += 1
            continue
        settle_work(m, costs, rows, r, job)
        rows.of[r].free += rows.job[at].held
        rows.job[at].held = 0
        rows.job[at].finish = now
        rows.of[r].changed = True
        j = rows.of[r].first + job
        worth = rows.job[at].unit * jobs.of[j].size * jobs.of[j].duration
        rows.of[r].earned += worth
        rows.of[r].owed += costs.utility_gain * worth + jobs.of[j].finish_gain
        charge(jobs, costs, rows, r, j, now)
    rows.of[r].num_running = kept


@njit_inlined
def charge(jobs: Jobs, costs: Costs, rows: Rows, r: int, j: int, until: int) -> None:
    """Takes what a job costs that was in the system up to a clock."""
    completion = until - jobs.of[j].arrival
    rows.of[r].owed -= jobs.of[j].rate * completion
    for k in range(costs.late_rate.shape[0]):
        late = max(completion - costs.late_after[k, j], 0)
        rows.of[r].owed -= costs.late_rate[k, j] * late


@njit_inlined
def grow_jobs(m: Machine, jobs: Jobs, costs: Costs, rows: Rows, r: int) -> None:
    """Gives free processors to squeezed jobs, one job after the other."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    while rows.of[r].free > 0:
        best, best_score = -1, -np.inf
        for k in range(rows.of[r].num_running):
            job = rows.running[r, k]
            at = base + job
            missing = jobs.of[first + job].size - rows.job[at].held
            if missing <= 0:
                continue
            if m.growth == BY_ARRIVAL:
                score = -float(job)
            elif m.growth == BY_UTILITY:
                score = rows.job[at].unit / (rows.job[at].end - now)
            else:
                score = -float(missing)
            if score > best_score:
                best, best_score = job, score
        if best < 0:
            return
        settle_work(m, costs, rows, r, best)
        at = base + best
        more = min(rows.of[r].free, jobs.of[first + best].size - rows.job[at].held)
        hold(jobs, rows, r, best, rows.job[at].held + more)
        rows.of[r].free -= more


@njit_inlined
def fill_victims(rows: Rows, r: int) -> None:
    """Writes the running jobs in the order in which they would be preempted into `Work.order`.

    That is by rising *remaining utility*, unit utility at completion over the time until then
    (section 4.1, step 4), which is written beside it, into `Work.urgency`.
    """
    base, now = rows.of[r].place, rows.of[r].time
    order, urgency = rows.work.order, rows.work.urgency
    for k in range(rows.of[r].num_running):
        job = rows.running[r, k]
        value = rows.job[base + job].unit / (rows.job[base + job].end - now)
        i = k
        while i > 0 and (
            urgency[i - 1] > value or (urgency[i - 1] == value and order[i - 1] > job)
        ):
            order[i], urgency[i] = order[i - 1], urgency[i - 1]
            i -= 1
        order[i], urgency[i] = job, value
