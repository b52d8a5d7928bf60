"""Rules and scorers in a simulator: whole episodes in compiled code, and single decisions.

At one instant all happens that `cluster_env.worlds.hpc.instants` says; then comes one pass over the
queue, in a pool that of `cluster_env.worlds.hpc.reservations`, at a site that of
`cluster_env.worlds.hpc.site.passes`. An event costs as much as the order has to look at, whatever
the number of processors.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import (
    FALSE,
    TRUE,
    ZERO,
    njit_called_where,
    njit_either,
    njit_inlined,
    njit_kernel,
    reference,
)
from cluster_env.core.seeding import uniform
from cluster_env.worlds.hpc.decisions import begin_pass, fits_beside
from cluster_env.worlds.hpc.episodes import Rows, copy_of, episode_of
from cluster_env.worlds.hpc.events import NEVER, Episode, Machine, begin_again, is_overdue
from cluster_env.worlds.hpc.instants import advance, clear, next_event
from cluster_env.worlds.hpc.jobs import NOBODY, Jobs
from cluster_env.worlds.hpc.queue import enter, move_overdue, rank
from cluster_env.worlds.hpc.reservations import start_ranked
from cluster_env.worlds.hpc.rules import CHANCE, CONSERVATIVE, FIXED, SCORED
from cluster_env.worlds.hpc.running import give_back
from cluster_env.worlds.hpc.selection import start_best
from cluster_env.worlds.hpc.site import passes
from cluster_env.worlds.hpc.site.copying import copy_episode
from cluster_env.worlds.hpc.site_arrays import Beginning


@njit_inlined
def _may_start_in_pool(episode: Episode) -> bool:
    """Whether any job that waits may start: where the narrowest one does not fit, none does.

    Where the last pass holds, those that have come have been looked at, but by a plan.
    """
    status = episode.status[0]
    planned = episode.order.rule.mode == CONSERVATIVE
    return bool(planned if status.holds else episode.free[0] >= status.narrowest)


@njit_inlined
def _may_start_at_site(episode: Episode) -> bool:
    status, rule = episode.status[0], episode.order.rule
    news = status.new_jobs > 0 or rule.mode == CONSERVATIVE or rule.max_wait > 0
    return bool(news if status.holds else passes.most_free(episode) >= status.narrowest)


@njit_inlined
def _bring_pool_to(episode: Episode, beginning: Beginning, now: int) -> None:
    """Lets the first jobs run as they do at a moment; see `Beginning`. In a pool none does."""


@njit_inlined
def _copy_in_pool(own: Episode, again: Episode) -> None:
    """Copies an episode of the same jobs, whose record is copied already."""
    status = again.status[0]
    for r in range(own.free.size):
        again.free[r] = own.free[r]
    for user in range(own.usage.size):
        again.usage[user] = own.usage[user]
    for place in range(status.head, status.tail):
        job = own.queue[place]
        again.queue[place - status.head], again.widths[place - status.head] = job, own.widths[place]
        again.keys[place - status.head], again.start[job] = own.keys[place], NOBODY
    status.head, status.tail = 0, status.tail - status.head
    for place in range(status.running):
        job = own.expected_jobs[place]
        again.expected[place], again.expected_jobs[place] = own.expected[place], job
        again.start[job] = own.start[job]


@njit_inlined
def _start_in_pool(episode: Episode, bounded: bool, now: int) -> bool:
    """Starts jobs that may start now; with ``bounded`` some are overdue.

    Returns whether others may start when scores have been looked at anew.
    """
    scored = episode.order.rule.kind == SCORED
    if scored:
        return start_best(episode, bounded, now)
    start_ranked(episode, bounded, now)
    return False


_may_start = njit_either(_may_start_in_pool, _may_start_at_site, "site")
_start_jobs = njit_either(_start_in_pool, passes.start_jobs, "site")
_bring_to = njit_either(_bring_pool_to, passes.bring_to, "site")
_copy = njit_either(_copy_in_pool, copy_episode, "site")


@njit_inlined
def _pass_over(episode: Episode, bounded: bool, ranks: bool, now: int) -> None:
    """Starts the jobs that an order starts at one instant.

    ``bounded`` says whether some are overdue, ``ranks`` whether the queue has to be sorted first.
    """
    begin_pass(episode, bounded, now)
    again = True
    while again:
        if ranks:
            rank(episode, now)
        again = _start_jobs(episode, bounded, now)


@njit_kernel
def play(
    machine: Machine,
    jobs: Jobs,
    rows: Rows,
    scratch: Rows,
    beginning: Beginning,
    row: int,
    instants: int,
) -> int:
    """Plays one episode after the other, from that of a row on, in the one row of ``scratch``.

    Its order is who plays. It stops after so many instants, and goes on from there when it is
    called again with the row that it returns; that is the number of rows when all are over. An
    episode begins where it is not active. What becomes of the jobs is written to the rows.
    """
    left, max_time = np.int64(instants), machine.options[0].max_time
    while row < rows.status.size:
        episode = reference(episode_of(machine, jobs, rows, row, scratch, ZERO))
        status, now = episode.status[0], episode.status[0].time
        if not status.active:
            clear(episode)
            now = np.int64(0)
        watched = np.int64(beginning.watched)  # of those, the last one that has not started
        while True:
            instant = np.int64(next_event(episode))
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
            advance(episode, now)
            if now == beginning.time:
                _bring_to(episode, beginning, now)
            waits = status.tail > status.head and now >= beginning.first_pass
            if waits and _may_start(episode):
                rule = episode.order.rule
                bounded = rule.max_wait > 0 and move_overdue(episode, now)
                _pass_over(episode, bounded, rule.kind != FIXED, now)
            while watched > 0 and episode.start[watched - 1] >= 0:
                watched -= 1
            if watched == 0 and beginning.watched > 0:
                break
        status.active, status.truncated = False, now > max_time
        status.time = min(now, max_time)
        row += 1
    return row


@njit_kernel
def choose(
    machine: Machine,
    jobs: Jobs,
    rows: Rows,
    which: NDArray[np.int32],
    uniforms: NDArray[np.float64],
    scratch: Rows,
    actions: NDArray[np.int32],
) -> None:
    """Chooses what an order would start next in some rows, see `HPCSimulator.choose`.

    The whole instant is played from its beginning, in the one row of ``scratch``, whose order it
    is, so that an order that looks at what is free, and a reservation, are those of the beginning
    although several decisions are taken. The uniforms are for the order `random`, which is drawn
    anew each time.
    """
    for i in range(which.size):
        row = np.int64(which[i])
        actions[i] = machine.options[0].queue
        own = reference(episode_of(machine, jobs, rows, row, rows, row))
        status, now = own.status[0], own.status[0].time
        if status.event <= status.decided:  # nothing has happened since then
            continue
        again = reference(copy_of(machine, jobs, rows, row, scratch))
        rule = again.order.rule
        _copy(own, again)
        if rule.kind == CHANCE:
            key = np.uint64(uniforms[i] * 2.0**53)
            for job in range(rule.score.size):
                rule.score[job] = uniform(key, job)
        else:
            _rewind(again)
        bounded = False
        for waiting in range(again.status[0].head, again.status[0].tail):
            bounded = bounded or is_overdue(again, np.int64(again.queue[waiting]), now)
        _pass_over(again, bounded, TRUE, now)
        # The first of those that it starts that has not started yet, and can be named.
        begin_pass(own, FALSE, now)
        last = min(status.tail, status.head + machine.options[0].queue)
        for k in range(again.status[0].begun):
            place = np.int64(status.head)
            while place < last and own.queue[place] != again.begun[k]:
                place += 1
            if place < last and fits_beside(own, place):
                actions[i] = place - status.head
                break


@njit_called_where("site")
def _rewind(episode: Episode) -> None:
    """Lets jobs wait again that have started since the present instant began."""
    status, kept = episode.status[0], np.int64(0)
    for place in range(status.running):
        job = np.int64(episode.expected_jobs[place])
        if episode.start[job] != status.time:
            episode.expected[kept], episode.expected_jobs[kept] = episode.expected[place], job
            kept += 1
            continue
        give_back(episode, job)
        episode.start[job] = NOBODY
        enter(episode, job)
    status.running = kept
    begin_again(episode)
