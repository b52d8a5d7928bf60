"""Whole episodes of a site in compiled code.

At one instant jobs finish, the calendar changes, expected ends that have passed are put off, jobs
enter the queue, and then comes one pass over it.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import NEVER, pop, push
from cluster_env.worlds.hpc.rules import FIXED
from cluster_env.worlds.hpc.site.arrays import Ints, Layout, Results, Run, Work
from cluster_env.worlds.hpc.site.events import (
    change_calendar,
    clear,
    count_arrival,
    finish_jobs,
    next_instant,
    raise_outlived,
)
from cluster_env.worlds.hpc.site.passes import some_may_start, start_jobs
from cluster_env.worlds.hpc.site.queue import SCORED, Order, insert, move_overdue, rank


@njit_kernel
def play_site(
    layout: Layout,
    work: Work,
    run: Run,
    order: Order,
    results: Results,
    which: Ints,
    place: Ints,
    max_time: int,
) -> None:
    """Plays one episode after the other to its end and writes `Results`.

    ``which`` is the jobset of each episode, ``place`` where its jobs stand in the results, both
    int64 ``(num_episodes,)``.
    """
    cuts = np.int64(0)
    for episode in range(which.size):
        clear(layout, work, run, which[episode])
        status, first, now = run.status[0], place[episode], np.int64(0)
        status.shares, status.counts, status.cut_runs = order.shares, order.kind == SCORED, cuts
        while True:
            instant = np.int64(next_instant(layout, work, run))
            if instant == NEVER:
                break
            now = instant
            if now > max_time:
                break
            finish_jobs(layout, work, run, now)
            change_calendar(layout, work, run, results, first, now)
            if status.running > 0 and run.expected[status.running - 1] <= now:
                raise_outlived(work, run, now)
            _let_come(layout, work, run, order, now)
            bounded = False
            if some_may_start(run):
                if order.kind != FIXED:
                    rank(layout, work, run, order, now)
                if order.max_wait > 0:
                    bounded = move_overdue(work, run, order, now)
                start_jobs(layout, work, run, order, bounded, now)
        results.truncated[episode], results.time[episode] = (
            now > max_time,
            min(now, np.int64(max_time)),
        )
        cuts = status.cut_runs
        for job in range(status.num_jobs):
            results.start[first + job], results.finish[first + job] = (
                run.start[job],
                run.finish[job],
            )
            results.eligible[first + job] = run.eligible[job]
            results.cuts[first + job], results.lost[first + job] = run.cuts[job], run.lost[job]


@njit_inlined
def _let_come(layout: Layout, work: Work, run: Run, order: Order, now: int) -> None:
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
        count_arrival(work, run, job, now)
        insert(work, run, job, order.score[status.first + job])
