"""From one instant to the next: jobs finish, jobs arrive, free processors are given away."""

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.accrual.arrays import BEGINNING, PREEMPTING, Costs, Jobs, Machine, Rows
from cluster_env.worlds.accrual.running import (
    charge,
    enqueue,
    finish_jobs,
    grow_jobs,
    next_finish,
    settle_work,
)
from cluster_env.worlds.accrual.starting import drop_expired, start_fitting

_NEVER = 2**62


@njit_inlined
def has_room(m: Machine, rows: Rows, r: int, steps: int) -> bool:
    """Whether all pieces can be written down that some instants or decisions can add."""
    most = steps * (6 * m.processors + 8)
    return bool(rows.of[r].num_pieces + most <= rows.pieces.shape[1])


@njit_inlined
def begin_episode(m: Machine, jobs: Jobs, rows: Rows, r: int) -> None:
    """Puts a row back to where its first instant, time 0, is still to come."""
    row = rows.of[r]
    for k in range(row.count):
        own, job = rows.job[row.place + k], jobs.of[row.first + k]
        own.left = job.size * job.duration
        own.held, own.since, own.start, own.finish = 0, 0, -1, -1
    row.num_waiting, row.num_running, row.coming, row.time = 0, 0, 0, 0
    row.num_pieces, row.free, row.stage = 0, m.processors, BEGINNING
    row.active, row.truncated, row.paused = row.count > 0, False, False
    row.owed, row.earned, row.busy = 0.0, 0.0, 0


@njit_inlined
def next_instant(m: Machine, jobs: Jobs, costs: Costs, rows: Rows, r: int) -> bool:
    """Lets time pass until a job finishes or arrives; returns whether the episode goes on.

    If it does, free processors are still to be given away; see `settle`.
    """
    first, last = rows.of[r].first, rows.of[r].first + rows.of[r].count
    now = next_finish(rows, r)
    if first + rows.of[r].coming < last:
        now = min(now, jobs.of[first + rows.of[r].coming].arrival)
    if rows.of[r].stage == BEGINNING:
        now = 0
    elif now == _NEVER or now > m.max_time:
        end_episode(m, jobs, costs, rows, r, now > m.max_time and now < _NEVER)
        return False
    rows.of[r].owed -= costs.busy_cost * (now - rows.of[r].time)
    rows.of[r].time = now
    rows.of[r].changed = False
    finish_jobs(m, jobs, costs, rows, r)
    while first + rows.of[r].coming < last and jobs.of[first + rows.of[r].coming].arrival == now:
        enqueue(rows, r, rows.of[r].coming)
        rows.of[r].coming += 1
    rows.of[r].stage = PREEMPTING
    rows.of[r].considered, rows.of[r].made = False, False
    return True


@njit_inlined
def settle(m: Machine, jobs: Jobs, costs: Costs, order: int, rows: Rows, r: int) -> None:
    """Gives free processors away before anything is decided."""
    if rows.of[r].free == 0:
        return
    if m.grow_first:
        grow_jobs(m, jobs, costs, rows, r)
    if m.drop_expired:
        drop_expired(jobs, rows, r)
    start_fitting(m, jobs, order, rows, r)
    if not m.grow_first:
        grow_jobs(m, jobs, costs, rows, r)


@njit_inlined
def end_episode(m: Machine, jobs: Jobs, costs: Costs, rows: Rows, r: int, cut: bool) -> None:
    """Writes down what jobs have done and cost until now, or until `max_time` if that cuts them."""
    base, first = rows.of[r].place, rows.of[r].first
    if cut:
        rows.of[r].owed -= costs.busy_cost * (m.max_time - rows.of[r].time)
        rows.of[r].time = m.max_time
    for k in range(rows.of[r].num_running):
        settle_work(m, costs, rows, r, rows.running[r, k])
    for k in range(rows.of[r].coming):
        if rows.job[base + k].finish < 0:
            charge(jobs, costs, rows, r, first + k, rows.of[r].time)
    rows.of[r].active, rows.of[r].truncated = False, cut
