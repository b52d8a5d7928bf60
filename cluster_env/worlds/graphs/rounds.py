"""Rounds of decisions: which stages get the executors that are to be assigned."""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.graphs.events import (
    can_take,
    common_pool,
    first_candidate,
    job_in_turn,
    job_of_pool,
    job_pool,
    keep_promise,
    next_event,
    num_free,
    num_idle,
    promise,
    rest,
    send,
)
from cluster_env.worlds.graphs.state import (
    CANDIDATE,
    HEADER,
    NOWHERE,
    Episode,
    candidate_of,
)

_MOST = 2**31 - 1


@njit_inlined
def next_decision(episode: Episode) -> bool:
    """Lets time pass until there is something to decide; returns whether there is."""
    record = episode.record
    while record.active:
        if record.deciding and (
            record.picked >= 0 or (num_free(episode) > 0 and first_candidate(episode) >= 0)
        ):
            return True
        if record.deciding or record.decided:
            close_round(episode)
        else:
            next_event(episode)
    return False


@njit_inlined
def close_round(episode: Episode) -> None:
    """Lets idle executors of the source go where they are promised, or wait."""
    record, source, common = episode.record, episode.record.source, common_pool(episode)
    # Executors of a stage that nobody took leave it, busy ones later; those of other pools wait.
    of_stage = source < common and source != job_pool(episode, job_of_pool(episode, source))
    if record.decided and of_stage and num_free(episode) > 0:
        promise(episode, common, num_free(episode))
    # The idle executor of the lowest number goes first. One that is sent to a stage whose parents
    # run goes on waiting in the same pool, so each is asked once.
    executor, idle = -1, num_idle(episode, source)
    while idle > 0:
        executor += 1
        if episode.executors[executor].pool != source or episode.executors[executor].busy:
            continue
        idle -= 1
        target = common
        if record.decided and episode.stages[source].owed > 0:
            target = keep_promise(episode, source)
        if target != common:
            send(episode, executor, target)
        elif source == common:
            break
        else:
            rest(episode, executor)
    for i in range(record.num_here):
        episode.jobs[episode.here[i]].chosen = 0
    record.deciding, record.decided, record.forced, record.source = False, False, False, NOWHERE


@njit_inlined
def most_of(episode: Episode, target: int) -> int:
    """The most executors of the source that a stage can take."""
    return min(num_free(episode), episode.stages[target].wanted)


@njit_inlined
def assign(episode: Episode, target: int, count: int) -> None:
    """Gives executors of the source to a stage; 0 of them end the round, if that is allowed."""
    record = episode.record
    record.decided, record.picked, record.skipped = True, NOWHERE, 0
    if count == 0 and record.forced:
        target, count = first_candidate(episode), 1
    if count == 0:
        record.deciding = False  # whoever is left waits
        return
    record.forced = False
    promise(episode, target, min(count, most_of(episode, target)))
    job, stage = divmod(target, episode.options.span)
    episode.jobs[job].chosen |= np.int64(1) << stage


@njit_inlined
def shown_target(episode: Episode, k: int) -> int:
    """The number of the k-th stage that the state shows, `NOWHERE` if it shows fewer."""
    if not 0 <= k < episode.options.candidates:
        return NOWHERE
    column = candidate_of(episode.state, k)
    if column[CANDIDATE.here] == 0:
        return NOWHERE
    return np.int64(column[CANDIDATE.job]) * episode.options.span + column[CANDIDATE.stage]


@njit_inlined
def act(episode: Episode, action: int) -> None:
    """Takes a decision: picks a stage, or says how many executors the picked one gets.

    Void shows the next stages, if there are more than the state shows, and else ends the round.
    """
    record = episode.record
    if record.picked >= 0:
        assign(episode, record.picked, max(min(action + 1, most_of(episode, record.picked)), 1))
        return
    target = shown_target(episode, action)
    if target < 0 and episode.state[HEADER.more] > 0:
        record.skipped += episode.options.candidates
    elif target < 0:
        assign(episode, NOWHERE, 0)
    elif most_of(episode, target) == 1:
        assign(episode, target, 1)
    else:
        record.picked = target


@njit_inlined
def action_for(episode: Episode, target: int, count: int) -> int:
    """The action by which a stage gets so many executors, or by which the next ones are shown."""
    options = episode.options
    if episode.record.picked >= 0:
        return (count if target == episode.record.picked else options.executors) - 1
    for k in range(options.candidates if count > 0 else 0):
        if shown_target(episode, k) == target:
            return k
    return options.items


@njit_inlined
def in_seconds(time: float) -> int:
    """Milliseconds as whole seconds that a state can hold."""
    return int(min(time / 1000.0 + 0.5, float(_MOST)))


@njit_inlined
def write_state(episode: Episode) -> None:
    """Writes what a policy sees, see `Header`."""
    record, state = episode.record, episode.state
    state[:] = 0
    total = 0.0
    for i in range(record.num_here):
        total += episode.jobs[episode.here[i]].work_left
    state[HEADER.jobs], state[HEADER.busy] = record.num_here, record.busy
    state[HEADER.work_left] = in_seconds(total)
    state[HEADER.recent_log_work] = np.int64(1000.0 * record.recent_log_work)
    state[HEADER.recent_burst] = np.int64(1000.0 * record.recent_burst)
    if not record.active:
        return
    write_nodes(episode)
    state[HEADER.free] = num_free(episode)
    if record.picked >= 0:
        state[HEADER.phase], state[HEADER.most] = 2, most_of(episode, record.picked)
        for k in range(state[HEADER.most]):
            write_candidate(episode, k, record.picked)
            candidate_of(state, k)[CANDIDATE.number] = k + 1
        state[HEADER.must] = 1
        return
    state[HEADER.phase] = 1
    write_candidates(episode)
    state[HEADER.must] = record.forced and state[HEADER.more] == 0


@njit_inlined
def write_candidates(episode: Episode) -> None:
    """Writes the stages that can get executors, from the first that was not skipped on.

    In the order of `job_in_turn`, those of a job by their numbers.
    """
    own, k = job_of_pool(episode, episode.record.source), -episode.record.skipped
    for i in range(-1, episode.record.num_here):
        job = job_in_turn(episode, own, i)
        if job < 0:
            continue
        for stage in range(episode.jobs[job].num_stages):
            if can_take(episode, job, stage):
                if k == episode.options.candidates:
                    episode.state[HEADER.more] = 1
                    return
                if k >= 0:
                    write_candidate(episode, k, job * episode.options.span + stage)
                k += 1


@njit_inlined
def write_nodes(episode: Episode) -> None:
    """Writes stages that have not ended, those of the executors' own job first, while room is."""
    options, state, n = episode.options, episode.state, 0
    own = job_of_pool(episode, episode.record.source)
    for i in range(-1, episode.record.num_here if options.nodes > 0 else -1):
        job = own if i < 0 else episode.here[i]
        if job < 0 or (i >= 0 and job == own):
            continue
        for stage in range(episode.jobs[job].num_stages):
            if n < options.nodes and (episode.jobs[job].unfinished >> stage) & 1 != 0:
                write_candidate(episode, options.items + n, job * options.span + stage)
                parents = episode.stages[job * options.span + stage].parents
                place = state.size - 2 * (options.nodes - n)
                state[place], state[place + 1] = parents & _MOST, parents >> 31
                n += 1


@njit_inlined
def write_candidate(episode: Episode, k: int, target: int) -> None:
    """Writes the columns of a stage."""
    column, stage = candidate_of(episode.state, k), episode.stages[target]
    number = target // episode.options.span
    job = episode.jobs[number]
    column[CANDIDATE.here], column[CANDIDATE.job] = 1, number
    column[CANDIDATE.stage] = target % episode.options.span
    column[CANDIDATE.own] = number == job_of_pool(episode, episode.record.source)
    column[CANDIDATE.ready] = (stage.parents & job.unfinished) == 0
    column[CANDIDATE.held] = job.held
    column[CANDIDATE.wanted] = stage.wanted
    column[CANDIDATE.time] = np.int64(min(stage.time, float(_MOST)))
    column[CANDIDATE.path] = np.int64(min(stage.path, float(_MOST)))
    column[CANDIDATE.work_left] = in_seconds(job.work_left)
    column[CANDIDATE.work] = in_seconds(job.work)
    column[CANDIDATE.age] = episode.record.time - job.arrival
