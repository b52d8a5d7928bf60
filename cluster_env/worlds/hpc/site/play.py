"""Whole episodes of a site in compiled code.

At one instant jobs finish, the calendar changes, expected ends that have passed are put off, jobs
enter the queue, and then comes one pass over it.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import NEVER, pop, push
from cluster_env.worlds.hpc.rules import CONSERVATIVE, FIXED, Scores
from cluster_env.worlds.hpc.site.arrays import (
    Beginning,
    Layout,
    Results,
    Run,
    Site,
    SiteRows,
    Work,
    run_of,
)
from cluster_env.worlds.hpc.site.events import (
    change_calendar,
    clear,
    count_arrival,
    finish_jobs,
    next_instant,
    note_arrival,
    raise_outlived,
)
from cluster_env.worlds.hpc.site.passes import bring_to, some_may_start, start_jobs
from cluster_env.worlds.hpc.site.queue import SCORED, Order, insert, move_overdue, rank


@njit_kernel
def play_site(
    site: Site,
    results: Results,
    rows: SiteRows,
    order: Order,
    beginning: Beginning,
    max_time: int,
    row: int,
    instants: int,
) -> int:
    """Plays one episode after the other, from that of a row on, in the one row of ``rows``.

    It stops after so many instants, and goes on from there when it is called again with the row
    that it returns; that is the number of rows when all are over. An episode begins where it is not
    active.
    """
    layout, work, left = site.layout, site.work, np.int64(instants)
    while row < results.status.size:
        run = run_of(site, results, row, rows, 0, 0)
        status, now = run.status[0], run.status[0].time
        if not status.active:
            clear(layout, work, run)
            now = np.int64(0)
            status.shares, status.counts = order.shares, order.kind == SCORED
            status.plans = order.mode == CONSERVATIVE
        watched = np.int64(beginning.watched)  # of those, the last one that has not started
        while True:
            instant = np.int64(next_instant(layout, work, run))
            if now < beginning.time:
                instant = min(instant, np.int64(beginning.time))
            if instant == NEVER:
                break
            now = instant
            if now > max_time:
                break
            if left == 0:
                return row
            left -= 1
            status.time = now
            advance(layout, work, run, order.score, now)
            bounded = False
            if now == beginning.time:
                bring_to(layout, work, run, beginning, now)
            if now >= beginning.first_pass and some_may_start(run):
                if order.kind != FIXED:
                    rank(layout, work, run, order, now)
                if order.max_wait > 0:
                    bounded = move_overdue(work, run, order, now)
                start_jobs(layout, work, run, order, bounded, now)
            while watched > 0 and run.start[watched - 1] >= 0:
                watched -= 1
            if watched == 0 and beginning.watched > 0:
                break
        status.active, status.truncated = False, now > max_time
        status.time = min(now, np.int64(max_time))
        row += 1
    return row


@njit_inlined
def advance(layout: Layout, work: Work, run: Run, score: Scores, now: int) -> None:
    """Lets all happen that happens at one instant before anybody decides.

    Jobs enter the queue by their scores, float64 ``(num_jobs,)`` of all jobsets.
    """
    status = run.status[0]
    finish_jobs(layout, work, run, now)
    change_calendar(layout, work, run, now)
    if status.running > 0 and run.expected[status.running - 1] <= now:
        raise_outlived(work, run, now)
    _let_come(layout, work, run, score, now)


@njit_inlined
def _let_come(layout: Layout, work: Work, run: Run, score: Scores, now: int) -> None:
    """Lets jobs enter the queue: those that arrive alone, and those that waited for others."""
    status = run.status[0]
    status.new_jobs = 0
    while True:
        arrives = status.coming < status.num_jobs
        arrives = arrives and work.records[status.first + status.coming].arrival <= now
        job = np.int64(status.coming)
        if arrives:
            status.coming += 1
            if work.records[status.first + job].predecessors > 0:
                continue
        elif status.later > 0 and run.later[0] <= now:
            job = np.int64(pop(run.later, run.later_jobs, status.later))
            status.later -= 1
        else:
            break
        if run.eligible[job] < 0:
            run.eligible[job] = now
            # A job of a reservation stays outside until that begins.
            reservation = work.records[status.first + job].reservation
            if reservation >= 0 and layout.entry_start[reservation] - status.shift > now:
                begin = layout.entry_start[reservation] - status.shift
                push(run.later, run.later_jobs, status.later, begin, job)
                status.later += 1
                continue
        if run.at_arrival.shape[0] > 0:
            note_arrival(layout, run, job, now)
        count_arrival(work, run, job, now)
        insert(work, run, job, score[status.first + job])
