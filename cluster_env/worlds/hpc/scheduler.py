"""Rules in a simulator: whole episodes in compiled code, and single decisions.

At one instant jobs finish, then jobs arrive, then the rule starts jobs. An event costs as much as
the rule has to look at, whatever the number of processors: nothing here loops over processors.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel, reference
from cluster_env.core.seeding import uniform
from cluster_env.worlds.hpc.episodes import Rows, copy_of, episode_of
from cluster_env.worlds.hpc.events import (
    NEVER,
    Episode,
    Machine,
    add_units,
    advance,
    begin_again,
    clear,
    fits,
    is_overdue_at,
    next_event,
    start_job,
)
from cluster_env.worlds.hpc.jobs import NOBODY, Jobs
from cluster_env.worlds.hpc.plan import Plan, begin_plan
from cluster_env.worlds.hpc.queue import enqueue, first_key, insert, move_overdue, rank
from cluster_env.worlds.hpc.reservations import (
    UNKNOWN,
    delays_nobody,
    start_bounded,
    start_by_plan,
    start_fitting,
    start_in_order,
    take_spare,
)
from cluster_env.worlds.hpc.rules import (
    CHANCE,
    CONSERVATIVE,
    EASY,
    FIXED,
    SKIP,
    STRICT,
    RuleTable,
    of_jobs,
)


@njit_kernel
def play_rule(
    machine: Machine, jobs: Jobs, rows: Rows, rule: RuleTable, scratch: Rows, plan: Plan
) -> None:
    """Plays one episode after the other to its end, in the one row of ``scratch``.

    It writes ``start`` and ``status`` of the rows.
    """
    for row in range(rows.status.size):
        episode = reference(episode_of(machine, jobs, rows, row, scratch, 0))
        clear(episode)
        status, max_time = episode.status[0], machine.options[0].max_time
        first, last = jobs.first[status.jobset], jobs.first[status.jobset + 1]
        end = _play(episode, of_jobs(rule, first, last), plan, max_time)
        status.truncated, status.time = end > max_time, min(end, max_time)


@njit_inlined
def _play(episode: Episode, rule: RuleTable, plan: Plan, max_time: int) -> int:
    """Plays an episode; returns the clock at its end, above `max_time` if it has to be cut."""
    status, num_jobs = episode.status[0], episode.jobs.size
    # A literal 0 would be a type of its own, and each part be compiled for it, too.
    now, shadow = int(np.int64(0)), int(np.int64(UNKNOWN))
    mode, fixed, oldest = rule.mode, rule.kind == FIXED, int(np.int64(0))
    tracks = mode >= EASY or rule.max_wait > 0  # reservations need expected ends
    # Orders that stay as they are, and estimates too, let much be remembered from event to event.
    settled = fixed and status.model == 0 and (mode < EASY or _agree(episode))
    if mode == CONSERVATIVE:
        begin_plan(plan, episode.capacity)
    while status.coming < num_jobs or status.running > 0:
        now = next_event(episode)
        if now > max_time:
            break
        first_new = status.coming
        changed = advance(episode, now, tracks, False, not fixed)
        num_new = status.coming - first_new
        # A job that comes alone and changes nothing for the others is looked at by itself.
        alone = settled and num_new == 1 and status.tail > status.head and not changed
        if rule.max_wait > 0:
            scores = rule.score if fixed else rule.score[:0]
            oldest = move_overdue(episode, scores, oldest, now, rule.max_wait)
            alone = alone and not is_overdue_at(episode, status.head, now, rule.max_wait)
        if alone and _comes_last(episode, rule, first_new, shadow, now):
            if _may_join(episode, rule, first_new, shadow, now):
                start_job(episode, first_new, now, tracks)
            else:
                enqueue(episode, first_new, rule.score[first_new])
            continue
        for job in range(first_new, status.coming):
            enqueue(episode, job, first_key(episode, rule, job))
        # Where the narrowest job does not fit, none does; but plans are made all the same.
        shadow = UNKNOWN
        full = episode.free[0] < status.narrowest and mode != CONSERVATIVE
        if status.tail > status.head and not full:
            if not fixed:
                rank(episode, rule, now)
            if mode == CONSERVATIVE and not settled:
                status.as_planned = False
            shadow = _start_jobs(episode, rule, plan, now, num_new, first_new)
    return now


@njit_inlined
def _start_jobs(
    episode: Episode, rule: RuleTable, plan: Plan, now: int, num_new: int, first_new: int
) -> int:
    """Starts the jobs that a rule starts at one instant, in the order of the queue.

    So many jobs have just come, from the number of the first new one on. Returns when the first job
    that waits is to start, if it has a reservation of EASY's.
    """
    shadow = UNKNOWN
    if is_overdue_at(episode, episode.status[0].head, now, rule.max_wait):
        start_bounded(episode, rule, plan, now)
        return shadow
    if rule.mode == CONSERVATIVE:
        start_by_plan(episode, rule, plan, now, num_new, first_new)
        return shadow
    # From the first on while they fit; then, if the rule lets them, those behind.
    if rule.mode != SKIP:
        start_in_order(episode, rule, now, rule.mode == EASY or rule.max_wait > 0)
    waiting = episode.status[0].tail > episode.status[0].head
    if rule.mode == SKIP or (rule.mode == EASY and waiting):
        shadow = start_fitting(episode, rule, now, rule.mode == EASY)
    return shadow


@njit_inlined
def _agree(episode: Episode) -> bool:
    """Whether what is believed of a job stays the same when it starts.

    Else what is spare beside a reservation is more, or less, once a job that took of it runs.
    """
    job = np.int64(0)
    while (
        job < episode.jobs.size and episode.jobs[job].order_estimate == episode.jobs[job].estimate
    ):
        job += 1
    return bool(job == episode.jobs.size)


@njit_inlined
def _comes_last(episode: Episode, rule: RuleTable, job: int, shadow: int, now: int) -> bool:
    """Whether a job that arrives alone changes nothing for those that wait already.

    None of them could start before it, and nothing has become free. So it is enough to look at the
    new job, unless it goes to the head, or reservations move because a job outlives its estimate.
    """
    status = episode.status[0]
    if rule.mode == SKIP:
        return True
    if rule.mode == CONSERVATIVE or rule.score[job] < episode.keys[status.head]:
        return False
    if rule.mode == STRICT:
        return True
    return shadow != UNKNOWN and episode.expected[status.running - 1] > now


@njit_inlined
def _may_join(episode: Episode, rule: RuleTable, job: int, shadow: int, now: int) -> bool:
    """Whether such a job may start at once; takes what is spare if it needs that."""
    if rule.mode == SKIP:
        return fits(episode.demand, job, episode.free)
    if rule.mode == STRICT or not delays_nobody(episode, job, now, shadow):
        return False
    take_spare(episode, job, now, shadow)
    return True


@njit_kernel
def choose_by_rule(
    machine: Machine,
    jobs: Jobs,
    rows: Rows,
    which: NDArray[np.int32],
    uniforms: NDArray[np.float64],
    rule: RuleTable,
    scratch: Rows,
    plan: Plan,
    order: NDArray[np.int32],
    actions: NDArray[np.int32],
) -> None:
    """Chooses what a rule would start next in some rows, see `HPCSimulator.choose`.

    The rule's whole instant is played from its beginning, in a scratch row, so that an order that
    looks at what is free, and a reservation, are those of the beginning although several decisions
    are taken. The uniforms are for the order `random`, which is drawn anew each time; ``order`` is
    room for the numbers of the waiting jobs.
    """
    for i in range(which.size):
        row = which[i]
        actions[i] = machine.options[0].queue
        own = reference(episode_of(machine, jobs, rows, row, rows, row))
        now = own.status[0].time
        if own.status[0].event <= own.status[0].decided:  # nothing has happened since then
            continue
        episode = reference(copy_of(machine, jobs, rows, row, scratch))
        rewind(own, episode, rule.kind != CHANCE)
        # The queue in the rule's order, which is kept, and what starts.
        jobset = own.status[0].jobset
        ranked = of_jobs(rule, jobs.first[jobset], jobs.first[jobset + 1])
        if rule.kind == CHANCE:
            key = np.uint64(uniforms[i] * 2.0**53)
            for job in range(ranked.score.size):
                ranked.score[job] = uniform(key, job)
        rank(episode, ranked, now)
        waiting = order[: episode.status[0].tail]
        for place in range(waiting.size):
            waiting[place] = episode.queue[place]
        _start_jobs(episode, ranked, plan, now, 0, 0)
        # The first of these that has not started yet, and can be named.
        for job in waiting:
            if episode.start[job] == now and own.start[job] != now:
                slot = slot_of(machine, own, job)
                if slot >= 0:
                    actions[i] = slot
                    break


@njit_inlined
def rewind(own: Episode, episode: Episode, whole: bool) -> None:
    """Copies an episode under way as it was when the present instant began, into its `copy_of`.

    Its queue is in order of arrival. ``whole`` says whether jobs that have started since then wait
    again.
    """
    status, now = episode.status[0], own.status[0].time
    begin_again(episode)
    status.head, status.tail, status.running = 0, 0, 0
    status.narrowest, status.as_planned = NEVER, False
    # What is free and what waits, now.
    for r in range(own.free.size):
        episode.free[r] = own.free[r]
    for user in range(own.usage.size):
        episode.usage[user] = own.usage[user]
    for place in range(own.status[0].head, own.status[0].tail):
        job = np.int64(own.queue[place])
        insert(episode, job, 0.0)
        episode.start[job] = NOBODY
    # What runs; but jobs that have started since then give their units back, and wait.
    for place in range(own.status[0].running):
        job = np.int64(own.expected_jobs[place])
        if whole and own.start[job] == now:
            add_units(episode.free, episode.demand, job, 1)
            insert(episode, job, 0.0)
            episode.start[job] = NOBODY
            continue
        episode.expected[status.running] = own.expected[place]
        episode.expected_jobs[status.running] = job
        status.running += 1


@njit_inlined
def slot_of(machine: Machine, own: Episode, job: int) -> int:
    """The action that starts a waiting job; -1 if a state does not show it, or it does not fit."""
    head = own.status[0].head
    last = min(own.status[0].tail, head + machine.options[0].queue)
    place = head
    while place < last and own.queue[place] != job:
        place += 1
    if place == last or not fits(own.demand, job, own.free):
        return -1
    return int(place - head)
