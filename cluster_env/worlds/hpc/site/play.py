"""Whole episodes of a site in compiled code.

At one instant jobs finish, the calendar changes, expected ends that have passed are put off, jobs
enter the queue, and then comes one pass over it.
"""

import numpy as np

from cluster_env.core.compiled import ZERO, njit_kernel, reference
from cluster_env.worlds.hpc.episodes import Rows, episode_of
from cluster_env.worlds.hpc.events import NEVER, Machine
from cluster_env.worlds.hpc.jobs import Jobs
from cluster_env.worlds.hpc.queue import move_overdue_at_site, rank
from cluster_env.worlds.hpc.rules import CONSERVATIVE, FIXED, SCORED
from cluster_env.worlds.hpc.site.events import advance_site, clear_site, next_at_site
from cluster_env.worlds.hpc.site.passes import bring_to, some_may_start, start_jobs
from cluster_env.worlds.hpc.site_arrays import Beginning


@njit_kernel
def play_site(
    machine: Machine,
    jobs: Jobs,
    rows: Rows,
    scratch: Rows,
    beginning: Beginning,
    row: int,
    instants: int,
) -> int:
    """Plays one episode after the other, from that of a row on, in the one row of ``scratch``.

    It stops after so many instants, and goes on from there when it is called again with the row
    that it returns; that is the number of rows when all are over. An episode begins where it is not
    active.
    """
    left, max_time = np.int64(instants), machine.options[0].max_time
    while row < rows.status.size:
        episode = reference(episode_of(machine, jobs, rows, row, scratch, ZERO))
        status, now, rule = episode.status[0], episode.status[0].time, episode.site.order.rule
        if not status.active:
            clear_site(episode)
            now = np.int64(0)
            status.shares, status.counts = episode.site.order.shares, rule.kind == SCORED
            status.plans = rule.mode == CONSERVATIVE
        watched = np.int64(beginning.watched)  # of those, the last one that has not started
        while True:
            instant = np.int64(next_at_site(episode))
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
            advance_site(episode, now)
            bounded = False
            if now == beginning.time:
                bring_to(episode, beginning, now)
            if now >= beginning.first_pass and some_may_start(episode):
                if rule.kind != FIXED:
                    rank(episode, rule, now)
                if rule.max_wait > 0:
                    bounded = move_overdue_at_site(episode, now, rule.max_wait)
                start_jobs(episode, bounded, now)
            while watched > 0 and episode.start[watched - 1] >= 0:
                watched -= 1
            if watched == 0 and beginning.watched > 0:
                break
        status.active, status.truncated = False, now > max_time
        status.time = min(now, max_time)
        row += 1
    return row
