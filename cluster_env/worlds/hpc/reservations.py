"""Who may start before the first waiting job: EASY's reservation, and plans of conservative ones.

EASY makes one reservation, for the first job of the order that does not fit. Under conservative
backfilling every waiting job has one that delays none before it. The plan is the one that is made
anew from the estimates at each event, in the order of the queue (Mu'alem and Feitelson, 2001). As
long as all goes as planned, a plan made anew is the old one: jobs that come go behind the others,
and those that run end just when they are expected to. Then only jobs that have just come are
planned. In all other cases the plan is made anew as far as jobs stand in the queue that are narrow
enough to start now.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import (
    NEVER,
    Episode,
    add_units,
    fits,
    is_overdue,
    is_overdue_at,
)
from cluster_env.worlds.hpc.jobs import NOBODY
from cluster_env.worlds.hpc.plan import FIRST, NEXT, SIZE, book, has_room, plan_running
from cluster_env.worlds.hpc.queue import leave, note_narrowest
from cluster_env.worlds.hpc.rules import CONSERVATIVE, EASY, FIXED, SKIP, STRICT
from cluster_env.worlds.hpc.running import run

UNKNOWN = -1
"""In place of a reservation's time that has to be worked out anew."""


@njit_inlined
def reserve(episode: Episode, head: int, now: int) -> int:
    """The earliest time at which a job is expected to fit (its *shadow time*, as EASY has it).

    The job does not fit now. It writes what will be spare beside it then.
    """
    times, jobs, demand = episode.expected, episode.expected_jobs, episode.demand
    spare = episode.spare
    for r in range(spare.size):
        spare[r] = episode.free[r] - demand[head, r]
    # Jobs end one after the other until nothing is short; an end that is over is the next second.
    shadow, place, short = now, episode.status[0].running, True
    while short:
        place -= 1
        shadow = max(times[place], now + 1)
        short = False
        for r in range(spare.size):
            spare[r] += demand[jobs[place], r]
            short = short or spare[r] < 0
    # Others that end at the same time leave their units as well.
    while place > 0 and times[place - 1] <= shadow:
        place -= 1
        for r in range(spare.size):
            spare[r] += demand[jobs[place], r]
    return int(shadow)


@njit_inlined
def delays_nobody(episode: Episode, job: int, now: int, shadow: int) -> bool:
    """Whether a job fits, and ends before the reservation or uses what is spare then."""
    if not fits(episode.demand, job, episode.free):
        return False
    in_time = now + episode.jobs[job].order_estimate <= shadow
    return bool(in_time or fits(episode.demand, job, episode.spare))


@njit_inlined
def take_spare(episode: Episode, job: int, now: int, shadow: int) -> None:
    """Takes units that are spare at the reservation, if a job that starts still runs then."""
    if now + episode.jobs[job].order_estimate > shadow:
        add_units(episode.spare, episode.demand, job, -1)


@njit_inlined
def starts_at_once(episode: Episode, job: int, now: int) -> bool:
    """Starts a job that comes, if it comes alone, and changes nothing for those that wait already.

    As long as the last pass holds, or none of them is narrow enough, none could start before it.
    So it is enough to look at the new job, unless jobs are overdue now. One that goes before all
    others and does not start is for a new pass.
    """
    status, rule = episode.status[0], episode.order.rule
    full = rule.mode < EASY and rule.kind == FIXED and episode.free[0] < status.narrowest
    status.holds = status.holds and not status.fleeting
    if not (status.holds or full) or rule.mode == CONSERVATIVE:
        return False
    oldest, coming = status.oldest, status.coming
    alone = coming == episode.jobs.size or episode.jobs[coming].arrival != now
    if rule.mode != SKIP:
        alone = alone and status.tail > status.head
    late = is_overdue_at(episode, status.head, now) or is_overdue(episode, oldest, now)
    status.holds = status.new_jobs == 0 and alone and not late
    if not status.holds:
        return False
    if rule.mode == SKIP:
        starts = fits(episode.demand, job, episode.free)
    else:
        starts = rule.mode == EASY and delays_nobody(episode, job, now, status.shadow)
    if starts:
        if rule.mode == EASY:
            take_spare(episode, job, now, status.shadow)
        _run(episode, job, now)
    return starts


@njit_inlined
def begin_pass_in_pool(episode: Episode, bounded: bool, now: int) -> None:
    """Begins a pass, over the whole queue where the last one holds no longer.

    With ``bounded``, some jobs are overdue.
    """
    status = episode.status[0]
    status.begun, status.holds = 0, status.holds and not bounded
    if not status.holds:
        status.blocked, status.passed, status.shadow = NOBODY, 0, UNKNOWN
    if bounded:
        plan_running(episode, episode.plan, now)


@njit_inlined
def start_ranked(episode: Episode, bounded: bool, now: int) -> None:
    """Starts the jobs of a sorted queue that may start now; with `bounded` some are overdue."""
    status, rule = episode.status[0], episode.order.rule
    status.fleeting = False
    if bounded:
        _start_bounded(episode, now)
    elif rule.mode == CONSERVATIVE:
        _start_by_plan(episode, now)
    else:
        # From the first on while they fit; then, if the rule lets them, those behind.
        if rule.mode != SKIP:
            _start_in_order(episode, now)
        if rule.mode == SKIP or (rule.mode == EASY and status.tail > status.head):
            status.shadow = _start_fitting(episode, now, rule.mode == EASY)
        status.last = np.int64(NOBODY if rule.mode == SKIP else 0)
        known = rule.mode != EASY or status.shadow != UNKNOWN
        status.holds = rule.kind == FIXED and not status.fleeting and known


@njit_inlined
def start_in_pool(episode: Episode, place: int, now: int) -> None:
    """Starts the job at a place of the queue."""
    job = np.int64(episode.queue[place])
    leave(episode, place, now)
    _run(episode, job, now)


@njit_inlined
def _run(episode: Episode, job: int, now: int) -> None:
    """Lets a job run.

    Where another time is believed of it from now on, what is spare is not what a new pass finds.
    """
    record = episode.jobs[job]
    differs = record.order_estimate != record.estimate and episode.order.tracks
    episode.status[0].fleeting = episode.status[0].fleeting or differs
    run(episode, job, now, np.int64(record.estimate))


@njit_inlined
def _start_in_order(episode: Episode, now: int) -> None:
    """Starts jobs from the first on, as long as they fit."""
    status = episode.status[0]
    while status.tail > status.head and fits(
        episode.demand, np.int64(episode.queue[status.head]), episode.free
    ):
        start_in_pool(episode, np.int64(status.head), now)


@njit_inlined
def _start_fitting(episode: Episode, now: int, easy: bool) -> int:
    """Starts whatever fits, in order.

    With `easy` the first job, which does not fit, gets a reservation, and what delays it does not
    start: a job has to end before, as expected, or to use what is spare then. Returns the time of
    the reservation, or `UNKNOWN` if none was needed because no other job is narrow enough.
    """
    status, shadow, free = episode.status[0], np.int64(UNKNOWN), episode.free[0]
    # Copies of what is read for each job; what is written elsewhere would be loaded again.
    head, tail, narrowest = status.head, status.tail, status.narrowest
    place = head + (1 if easy else 0)
    while free >= narrowest:
        while place < tail and episode.widths[place] > free:  # most, in a long queue
            place += 1
        if place == tail:
            break
        job = np.int64(episode.queue[place])
        if easy and shadow == UNKNOWN:
            shadow = np.int64(reserve(episode, np.int64(episode.queue[head]), now))
        starts = (
            delays_nobody(episode, job, now, shadow)
            if easy
            else fits(episode.demand, job, episode.free)
        )
        if not starts:
            place += 1
            continue
        if easy:
            take_spare(episode, job, now, shadow)
        start_in_pool(episode, place, now)
        free, place = episode.free[0], place + status.head - head
        head, tail = status.head, status.tail
    if place >= tail:
        note_narrowest(episode)
    return int(shadow)


@njit_inlined
def _start_by_plan(episode: Episode, now: int) -> None:
    """Gives waiting jobs the earliest room that delays none before them; what begins now starts."""
    status, plan = episode.status[0], episode.plan
    # Jobs that have a plan that holds start by it; all others, the last ones, are planned now.
    sound, left = status.holds, status.new_jobs
    if sound:
        # What is over is forgotten.
        first = plan.state[FIRST]
        while first + 1 < plan.state[SIZE] and plan.times[first + 1] <= now:
            first += 1
        plan.times[first], plan.state[FIRST] = now, first
        if plan.state[NEXT] == now:
            _start_planned(episode, now)
    else:
        plan_running(episode, plan, now)
        left, narrowest = status.tail - status.head, np.int32(2**31 - 1)
        for k in range(left):
            narrowest = min(narrowest, episode.widths[status.tail - 1 - k])
            plan.narrowest[k] = narrowest
    while left > 0 and (sound or plan.narrowest[left - 1] <= episode.free[0]):
        place = status.tail - left
        job = episode.queue[place]
        begin = book(plan, episode.demand[job], episode.jobs[job].order_estimate)
        plan.start[job] = begin
        if begin == now:
            start_in_pool(episode, place, now)
        else:
            plan.state[NEXT] = min(plan.state[NEXT], begin)
        left -= 1
    status.last = status.tail - status.head - 1
    status.holds = left == 0 and episode.order.rule.kind == FIXED and not status.fleeting


@njit_inlined
def _start_planned(episode: Episode, now: int) -> None:
    """Starts jobs whose time has come, but for those that have just come; their room is booked."""
    status, plan, next_start = episode.status[0], episode.plan, np.int64(NEVER)
    for left in range(status.tail - status.head, status.new_jobs, -1):
        place = status.tail - left
        job = episode.queue[place]
        if plan.start[job] == now:
            start_in_pool(episode, place, now)
        else:
            next_start = min(next_start, plan.start[job])
    plan.state[NEXT] = next_start


@njit_inlined
def _start_bounded(episode: Episode, now: int) -> None:
    """Starts jobs where the first of the queue are overdue, and nothing may delay these.

    Overdue jobs get reservations one after the other; then the rule goes on in what they leave. The
    first job that EASY cannot start has a reservation behind theirs. All of it goes by what users
    asked for: a job that is believed too short would break the bound.
    """
    status, plan, mode = episode.status[0], episode.plan, episode.order.rule.mode
    blocked, passed = False, np.int64(0)
    hopeless = _hopeless(episode, passed, np.int64(0), now)
    while passed + hopeless < status.tail - status.head:
        place = status.head + passed
        job = np.int64(episode.queue[place])
        demand, seconds = episode.demand[job], np.int64(episode.jobs[job].limit)
        overdue = is_overdue(episode, job, now)
        books = overdue or mode == CONSERVATIVE or (mode == EASY and not blocked)
        if not books:
            books = has_room(plan, demand, seconds, now)
        if books and book(plan, demand, seconds) == now:
            start_in_pool(episode, place, now)
            # The next that is alike may stand among the last ones.
            hopeless = np.int64(0) if episode.last_alike.size > 0 else hopeless
        else:
            passed += 1
            blocked = blocked or not overdue
            if mode == STRICT and not overdue:
                break
        hopeless = _hopeless(episode, passed, hopeless, now)


@njit_inlined
def may_start_in_pool(episode: Episode, place: int, bounded: bool) -> bool:
    """Whether the job at a place of the queue may start now; with ``bounded``, beside the plan."""
    job, now = np.int64(episode.queue[place]), episode.status[0].time
    demand, seconds = episode.demand[job], np.int64(episode.jobs[job].limit)
    room = fits(episode.demand, job, episode.free)
    return bool(room and (not bounded or has_room(episode.plan, demand, seconds, now)))


@njit_inlined
def book_overdue(episode: Episode, place: int, now: int) -> int:
    """Gives overdue jobs reservations from a place of the queue on, up to one that begins now.

    Returns its place, or that of the first job that is not overdue; the end of the queue where no
    job can start any more.
    """
    begins_now, hopeless, head = False, np.int64(0), episode.status[0].head
    while not begins_now and is_overdue_at(episode, place, now):
        hopeless = _hopeless(episode, place - head, hopeless, now)
        if place + hopeless == episode.status[0].tail:
            return int(episode.status[0].tail)
        job = episode.queue[place]
        begins_now = book(episode.plan, episode.demand[job], episode.jobs[job].limit) == now
        place += not begins_now
    return int(place)


@njit_inlined
def _hopeless(episode: Episode, passed: int, known: int, now: int) -> int:
    """How many jobs at the end of the queue cannot start now, of those behind the first ones.

    A plan only fills up while jobs are booked, so that so many are known already, and none of them
    need be booked.
    """
    status, hopeless, room = episode.status[0], known, False
    while not room and passed + hopeless < status.tail - status.head:
        job = episode.queue[status.tail - 1 - hopeless]
        room = has_room(episode.plan, episode.demand[job], episode.jobs[job].limit, now)
        hopeless += not room
    return hopeless
