"""Scorers in a simulator: whole episodes, single decisions, and scores of bare states.

An event costs as much as the jobs that are scored at it: none if the narrowest waiting job does not
fit, those that fit in the modes that skip, and all that wait where the first of them counts.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc import state as header
from cluster_env.worlds.hpc.episodes import Rows, episode_of
from cluster_env.worlds.hpc.events import (
    Episode,
    Jobs,
    Machine,
    advance,
    clear,
    fits,
    is_overdue_at,
    next_event,
)
from cluster_env.worlds.hpc.features import BACKFILLS, FITS
from cluster_env.worlds.hpc.queue import enqueue, move_overdue, start_waiting
from cluster_env.worlds.hpc.reservations import (
    Plan,
    book,
    book_overdue,
    delays_nobody,
    has_room,
    plan_running,
    reserve,
    take_spare,
)
from cluster_env.worlds.hpc.scheduler import rewind, slot_of
from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION, SIZE, Scorer

ALL, FITTING, BACKFILLING = range(3)
"""Which waiting jobs are looked at."""

LOOK, BLOCKED, SHADOW, BOUNDED, OVERDUE = range(5)
"""Places of an instant: which jobs are looked at, the one that has a reservation, and its time;
whether there is a plan because jobs are overdue, and how many of these, the first that wait, have
their reservations in it."""

_NONE = -1
_WIDEST = 2**31 - 1
_LOG_2 = math.log(2.0)


class Scoring(NamedTuple):
    """A scorer, and what it works with."""

    weights: NDArray[np.float64]  # (SIZE, SIZE)
    first_look: int  # which jobs are looked at when an instant begins
    strict: bool  # whether the first job blocks the others
    bilinear: bool  # whether what counts of a job depends on the state
    state: NDArray[np.float64]  # (SIZE,), features of the state and 1
    job: NDArray[np.float64]  # (SIZE,), what each feature of a job counts
    instant: NDArray[np.int64]  # (5,), what has been decided at the present instant
    max_wait: int  # seconds after which a job is overdue, 0 for never
    plan: Plan  # of overdue jobs

    @classmethod
    def of(cls, scorer: Scorer, max_wait: int = 0, plan: Plan | None = None) -> "Scoring":
        """A scorer with room to work in; a bound on waits needs room for a plan."""
        return cls(
            np.ascontiguousarray(scorer.weights, np.float64),
            FITTING if scorer.mode == "skip" else ALL,
            scorer.mode == "strict",
            scorer.is_bilinear,
            np.ones(SIZE),
            np.zeros(SIZE),
            np.zeros(5, np.int64),
            max_wait,
            plan or Plan.of(0, 1),
        )


class Situation(NamedTuple):
    """What a scorer sees of machine and queue, before it is brought to scale."""

    free: float  # share of the processors
    waiting: float  # jobs
    queued_work: float  # seconds of the whole machine
    next_end: float  # seconds
    queue_log: float  # mean of ln(estimate)
    running_work: float  # seconds of the whole machine
    running: float  # jobs
    running_log: float  # mean of ln(estimate)
    load: float  # ln of it


class Recent(NamedTuple):
    """What a scorer sees of the last arrivals, before it is brought to scale."""

    log: float  # mean of ln(estimate)
    deviation: float
    area: float  # mean of ln(estimate x processors)
    area_deviation: float
    log_gap: float  # mean of ln(1 + seconds between them)


class Factors(NamedTuple):
    """Numbers that a decision takes from weights and state, so that a score is a short sum."""

    log: float  # of ln(estimate)
    log_size: float  # of ln(processors)
    wait: float  # of ln(estimate + waited)
    size: float  # of processors
    of_free: float
    fits: float
    constant: float


@njit_kernel
def play_scorer(machine: Machine, jobs: Jobs, rows: Rows, scoring: Scoring, scratch: Rows) -> None:
    """Plays one episode after the other; see `cluster_env.worlds.hpc.scheduler.play_rule`."""
    for row in range(rows.status.size):
        episode = episode_of(machine, jobs, rows, row, scratch, 0)
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
        own = episode_of(machine, jobs, rows, row, rows, row)
        now = own.status[0].time
        if own.status[0].event <= own.status[0].decided:  # nothing has happened since then
            continue
        # The instant is played from its beginning, up to the first job that has not started yet.
        episode = rewind(machine, jobs, rows, row, scratch, True)
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
        factors = _look(episode, scoring, now)
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
def _look(episode: Episode, scoring: Scoring, now: int) -> Factors:
    """Looks at an episode, and works out what counts of a job."""
    status, processors = episode.status[0], float(episode.capacity[0])
    recent = Recent(
        log=status.log,
        deviation=deviation_of(status.log, status.log_square),
        area=status.area,
        area_deviation=deviation_of(status.area, status.area_square),
        log_gap=status.log_gap,
    )
    # What the state adds by itself is the same for all jobs.
    if scoring.bilinear:
        waiting, running = status.tail - status.head + status.behind, status.running
        next_end, running_work, running_log = 0.0, 0.0, 0.0
        if running > 0:
            next_end = float(max(episode.expected[running - 1] - now, 0))
            left = status.run_work - float(now) * status.run_size
            running_work = max(left, 0.0) / processors
            running_log = status.run_log / running
        load = status.work / processors / max(status.gap, 1.0)
        situation = Situation(
            free=episode.free[0] / processors,
            waiting=float(waiting),
            queued_work=max(status.queue_work, 0.0) / processors,
            next_end=next_end,
            queue_log=status.queue_log / max(waiting, 1),
            running_work=running_work,
            running=float(running),
            running_log=running_log,
            load=math.log(max(load, 1e-6)),
        )
        describe_state(situation, recent.deviation, scoring.state)
    return weigh(scoring, recent, processors)


@njit_inlined
def deviation_of(mean: float, square: float) -> float:
    """A standard deviation from the means of values and of their squares."""
    return max(math.sqrt(max(square - mean * mean, 0.0)), LEAST_DEVIATION)


@njit_inlined
def describe_state(seen: Situation, deviation: float, out: NDArray[np.float64]) -> None:
    """Writes the features of the state, in the order of `scorer.STATE_FEATURES`."""
    values = (
        seen.free,
        math.log(1.0 + seen.waiting) / 4.0,
        math.log(1.0 + seen.queued_work) / 8.0,
        math.log(1.0 + seen.next_end) / 8.0,
        seen.queue_log / 4.0,
        math.log(1.0 + seen.running_work) / 8.0,
        math.log(1.0 + seen.running) / 4.0,
        seen.running_log / 4.0,
        seen.load / 2.0,
        deviation / 2.0,
    )
    for column in range(len(values)):
        out[column] = values[column]


@njit_inlined
def weigh(scoring: Scoring, recent: Recent, processors: float) -> Factors:
    """Works out what counts of a job, so that its score is a short sum."""
    weights, w, last = scoring.weights, scoring.job, SIZE - 1
    for row in range(SIZE):
        w[row] = weights[row, last]
        if scoring.bilinear or row == last:
            for column in range(last):
                w[row] += weights[row, column] * scoring.state[column]
    # What each feature of a job counts, in the order of `scorer.JOB_FEATURES`; the logarithm of
    # 1 + waited / estimate is the difference of those of estimate + waited and of the estimate.
    log_estimate, log_share, log_size, relative_estimate, stretch = w[0], w[1], w[2], w[3], w[4]
    share, of_free, fit, relative_area, log_gaps = w[5], w[6], w[7], w[8], w[9]
    log_processors = math.log(processors)
    of_estimate = relative_estimate / recent.deviation
    of_area = relative_area / recent.area_deviation
    means = log_share * log_processors + log_gaps * recent.log_gap
    return Factors(
        log=(log_estimate - stretch + log_gaps) / 4.0 + of_estimate + of_area,
        log_size=log_share / 4.0 + log_size / max(log_processors, _LOG_2) + of_area,
        wait=stretch / 4.0,
        size=share / processors,
        of_free=of_free,
        fits=fit,
        constant=w[last] - means / 4.0 - of_estimate * recent.log - of_area * recent.area,
    )


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


@njit_inlined
def score_job(
    factors: Factors, log: float, log_size: float, size: float, lasting: float, share: float
) -> float:
    """The score of a job, but for whether it fits.

    ``lasting`` is the seconds that it has waited, and its estimate; ``share`` 1 over the free
    processors.
    """
    score = factors.constant + factors.log * log + factors.log_size * log_size
    score += factors.size * size
    if factors.wait != 0.0:
        score += factors.wait * math.log(lasting)
    if factors.of_free != 0.0:
        score += factors.of_free * min(size * share, 2.0)
    return score


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
    processors: int,
    scoring: Scoring,
    fitting: NDArray[np.float32],
    scores: NDArray[np.float64],
) -> None:
    """Writes the scores of the jobs that states show, ``(n, queue)``; others are left."""
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
            scores[i, slot] = factors.fits * fitting[i, slot] + score_job(
                factors,
                math.log(estimate),
                math.log(size),
                size,
                estimate + job[header.WAITED],
                1.0 / max(free, 1.0),
            )
