"""Scorers in a simulator: whole episodes, single decisions, and scores of bare states.

An event costs as much as the jobs that are scored at it: none if the narrowest waiting job does not
fit, those that fit in the modes that skip, and all that wait where the first of them counts.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel, reference
from cluster_env.worlds.hpc import site_arrays as at_site
from cluster_env.worlds.hpc import state as header
from cluster_env.worlds.hpc.episodes import Rows, copy_of, episode_of
from cluster_env.worlds.hpc.events import (
    Episode,
    Machine,
    advance,
    clear,
    fits,
    is_overdue_at,
    next_event,
)
from cluster_env.worlds.hpc.features import BACKFILLS, FITS
from cluster_env.worlds.hpc.jobs import Jobs
from cluster_env.worlds.hpc.plan import book, has_room, plan_running
from cluster_env.worlds.hpc.queue import enqueue, move_overdue, start_waiting
from cluster_env.worlds.hpc.reservations import book_overdue, delays_nobody, reserve, take_spare
from cluster_env.worlds.hpc.scheduler import rewind, slot_of
from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION, Scorer
from cluster_env.worlds.hpc.seen import (
    ALL,
    BACKFILLING,
    FITTING,
    Factors,
    Recent,
    Scoring,
    Situation,
    describe_state,
    look_at,
    score_job,
    weigh,
)

LOOK, BLOCKED, SHADOW, BOUNDED, OVERDUE = range(5)
"""Places of an instant: which jobs are looked at, the one that has a reservation, and its time;
whether there is a plan because jobs are overdue, and how many of these, the first that wait, have
their reservations in it."""

_NONE = -1
_WIDEST = 2**31 - 1


@njit_kernel
def play_scorer(machine: Machine, jobs: Jobs, rows: Rows, scoring: Scoring, scratch: Rows) -> None:
    """Plays one episode after the other; see `cluster_env.worlds.hpc.scheduler.play_rule`."""
    for row in range(rows.status.size):
        episode = reference(episode_of(machine, jobs, rows, row, scratch, 0))
        clear(episode)
        status, now, oldest = episode.status[0], np.int64(0), int(np.int64(0))
        while status.coming < episode.jobs.size or status.running > 0:
            now = np.int64(next_event(episode))
            if now > machine.options[0].max_time:
                break
            # What happens, and then starts one by one until no further job may start.
            first_new = status.coming
            advance(episode, now, True, True, False)
            if scoring.max_wait > 0:
                oldest = move_overdue(episode, scoring.state[:0], oldest, now, scoring.max_wait)
            for new in range(first_new, status.coming):
                enqueue(episode, new, 0.0)
            _begin(episode, scoring, now)
            while _start_next(episode, scoring, now) != _NONE:
                pass
        rows.status[row].truncated = now > machine.options[0].max_time
        rows.status[row].time = min(now, machine.options[0].max_time)


@njit_kernel
def choose_by_scorer(
    machine: Machine,
    jobs: Jobs,
    rows: Rows,
    which: NDArray[np.int32],
    scoring: Scoring,
    scratch: Rows,
    actions: NDArray[np.int32],
) -> None:
    """Chooses what a scorer would start next; see `scheduler.choose_by_rule`."""
    for i in range(which.size):
        row = which[i]
        actions[i] = machine.options[0].queue
        own = reference(episode_of(machine, jobs, rows, row, rows, row))
        now = own.status[0].time
        if own.status[0].event <= own.status[0].decided:  # nothing has happened since then
            continue
        # The instant is played from its beginning, up to the first job that has not started yet.
        episode = reference(copy_of(machine, jobs, rows, row, scratch))
        rewind(own, episode, True)
        _begin(episode, scoring, now)
        job = _start_next(episode, scoring, now)
        while job != _NONE:
            if own.start[job] != now:
                slot = slot_of(machine, own, job)
                if slot >= 0:
                    actions[i] = slot
                    break
            job = _start_next(episode, scoring, now)


@njit_inlined
def _begin(episode: Episode, scoring: Scoring, now: int) -> None:
    """Begins an instant; the oldest job is the first of the queue."""
    instant, status = scoring.instant, episode.status[0]
    instant[LOOK], instant[BOUNDED], instant[OVERDUE] = scoring.first_look, 0, 0
    if is_overdue_at(episode, status.head, now, scoring.max_wait):
        instant[BOUNDED] = 1
        plan_running(episode, scoring.plan, now)


@njit_inlined
def _start_next(episode: Episode, scoring: Scoring, now: int) -> int:
    """Starts the next job of an instant, and returns it; -1 if the rest waits or none may start."""
    instant, status = scoring.instant, episode.status[0]
    # Nothing starts where the narrowest does not fit, whatever the scores are.
    while status.tail > status.head and episode.free[0] >= status.narrowest:
        if instant[BOUNDED]:
            # Overdue jobs go first, and the others stand behind those that cannot start.
            next_place = status.head + instant[OVERDUE]
            next_place = book_overdue(episode, scoring.plan, scoring.max_wait, next_place, now)
            instant[OVERDUE] = next_place - status.head
            if is_overdue_at(episode, next_place, now, scoring.max_wait):
                overdue = np.int64(episode.queue[next_place])
                start_waiting(episode, next_place, now)
                return int(overdue)
        waiting, running = status.tail - status.head + status.behind, status.running
        next_end = float(max(episode.expected[running - 1] - now, 0)) if running > 0 else 0.0
        free, processors = float(episode.free[0]), float(episode.capacity[0])
        factors = look_at(
            scoring, episode.sums[0], now, free, processors, waiting, running, next_end
        )
        place = _best(episode, factors, scoring, now)
        if place == _NONE:
            break
        job = np.int64(episode.queue[place])
        demand, seconds = episode.demand[job], episode.jobs[job].limit
        starts = instant[LOOK] != ALL or fits(episode.demand, job, episode.free)
        if instant[BOUNDED] and starts:
            starts = has_room(scoring.plan, demand, seconds, now)
        if not starts and scoring.strict:
            break
        if instant[BOUNDED]:
            book(scoring.plan, demand, seconds)
        if not starts:
            # The first job gets a reservation; only what does not delay it may start from here on.
            if not instant[BOUNDED]:
                instant[SHADOW] = reserve(episode, job, now)
            instant[BLOCKED], instant[LOOK] = job, BACKFILLING
            continue
        if instant[LOOK] == BACKFILLING and not instant[BOUNDED]:
            take_spare(episode, job, now, instant[SHADOW])
        start_waiting(episode, place, now)
        return int(job)
    return int(np.int64(_NONE))


@njit_inlined
def _best(episode: Episode, factors: Factors, scoring: Scoring, now: int) -> int:
    """Place of the job with the lowest score among those looked at; -1 if none may start."""
    instant, free = scoring.instant, episode.free[0]
    look, share = instant[LOOK], 1.0 / max(float(free), 1.0)
    best, lowest, narrowest = np.int64(_NONE), np.inf, np.int64(_WIDEST)
    first = episode.status[0].head + instant[OVERDUE]  # those before have their reservations
    for place in range(episode.status[0].head, first):
        narrowest = min(narrowest, np.int64(episode.widths[place]))
    for place in range(first, episode.status[0].tail):
        width = np.int64(episode.widths[place])
        narrowest = min(narrowest, width)
        if look != ALL and width > free:
            continue
        # Those that fit, and do not delay the one with the reservation.
        job = episode.queue[place]
        if look == FITTING and not fits(episode.demand, job, episode.free):
            continue
        if look == BACKFILLING and job == instant[BLOCKED]:
            continue
        if look != ALL and instant[BOUNDED]:
            seconds = episode.jobs[job].limit
            if not has_room(scoring.plan, episode.demand[job], seconds, now):
                continue
        elif look == BACKFILLING and not delays_nobody(episode, job, now, instant[SHADOW]):
            continue
        lasting = episode.jobs[job].order_estimate + now - episode.jobs[job].arrival
        score = score_job(
            factors,
            episode.jobs[job].log,
            episode.jobs[job].log_size,
            float(width),
            float(lasting),
            share,
        )
        if factors.fits != 0.0 and (look != ALL or fits(episode.demand, job, episode.free)):
            score += factors.fits
        # Equal scores go by arrival; the queue may have another order.
        if score < lowest or (score == lowest and job < episode.queue[best]):
            best, lowest = np.int64(place), score
    episode.status[0].narrowest = narrowest
    return int(best)


def score_states(
    scorer: Scorer, world: Any, states: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of the waiting jobs of states, ``(n, queue)``, and what may be done.

    The latter is bool ``(n, queue + 1)``: start a job, and, last, wait. Simulators that play a
    scorer are exact; a state shows a part of the queue, rounds what it sums up, and knows the
    reservation of the oldest waiting job alone, so that ``easy`` keeps that one.

    Raises:
        InputError: if the states are not of this `HPC`.
    """
    items = world.features(states).items
    fitting, backfills = items[:, :, FITS], items[:, :, BACKFILLS] > 0
    scores = np.full(fitting.shape, np.inf)
    layout = world.layout
    _score_all(
        states,
        layout.jobs_at,
        layout.job_size,
        layout.num_resources if layout.site else 0,
        world.processors,
        Scoring.of(scorer),
        fitting,
        scores,
    )
    # What a mode lets start; it waits where that is nothing.
    allowed = fitting > 0
    if scorer.mode == "strict":
        allowed &= np.arange(layout.queue) == scores.argmin(axis=1)[:, None]
    elif scorer.mode == "easy":
        allowed = backfills
    waits = ~allowed.any(axis=1)
    return scores, np.concatenate([allowed, waits[:, None]], axis=1)


@njit_kernel
def _score_all(
    states: NDArray[np.int32],
    jobs_at: int,
    job_size: int,
    site_at: int,
    processors: int,
    scoring: Scoring,
    fitting: NDArray[np.float32],
    scores: NDArray[np.float64],
) -> None:
    """Writes the scores of the jobs that states show, ``(n, queue)``; others are left.

    ``site_at`` says where what a site shows of a job begins behind its first demand; 0 for a pool.
    """
    for i in range(states.shape[0]):
        state = states[i]
        free = float(state[header.FREE])
        situation = Situation(
            free=free / processors,
            waiting=float(state[header.WAITING]),
            queued_work=float(state[header.QUEUED_WORK]),
            next_end=float(state[header.NEXT_END]),
            queue_log=state[header.QUEUE_LOG] / 1000.0,
            running_work=float(state[header.RUNNING_WORK]),
            running=float(state[header.RUNNING]),
            running_log=state[header.RUNNING_LOG] / 1000.0,
            load=state[header.RECENT_LOAD] / 1000.0,
        )
        recent = Recent(
            log=state[header.RECENT_LOG] / 1000.0,
            deviation=max(state[header.RECENT_LOG_DEVIATION] / 1000.0, LEAST_DEVIATION),
            area=state[header.RECENT_LOG_AREA] / 1000.0,
            area_deviation=max(state[header.RECENT_LOG_AREA_DEVIATION] / 1000.0, LEAST_DEVIATION),
            log_gap=state[header.RECENT_LOG_GAP] / 1000.0,
        )
        describe_state(situation, recent.deviation, scoring.state)
        factors = weigh(scoring, recent, float(processors))
        # The jobs that are seen.
        for slot in range(min(np.int64(state[header.WAITING]), scores.shape[1])):
            job = state[jobs_at + slot * job_size :]
            estimate, size = float(job[header.ESTIMATE]), float(job[header.DEMAND])
            if site_at > 0:  # its partition is its machine
                own = job[header.DEMAND + site_at :]
                free = float(own[at_site.PARTITION_FREE])
                factors = weigh(scoring, recent, float(own[at_site.PARTITION_PROCESSORS]))
            scores[i, slot] = factors.fits * fitting[i, slot] + score_job(
                factors,
                math.log(estimate),
                math.log(size),
                size,
                estimate + job[header.WAITED],
                1.0 / max(free, 1.0),
            )
