"""What happens to jobs from one instant to the next: they arrive, run, are preempted and finish.

Where there are projects (section 6), those of higher numbers come first at each instant: they start
jobs and decide as if there were no jobs of lower ones. Whatever those hold is free to them, and is
taken from them when it is needed.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.core.utility import unit_utility
from cluster_env.worlds.accrual.state import BEGINNING, PREEMPTING, Pool, Server, server_of

NEVER = 2**62


@njit_inlined
def steps_on(pool: Pool, job: int, processors: int) -> int:
    """Steps that a job still runs on so many processors; the last one may be used in part."""
    return -(-pool.progress[job].work_left // processors)


@njit_inlined
def unit_utility_at(pool: Pool, job: int, end: int) -> float:
    """Unit utility of a job that finishes at a clock."""
    completion = end - pool.jobs[job].arrival
    return unit_utility(pool.functions[job], completion, pool.jobs[job].duration)


@njit_inlined
def final_utility(pool: Pool, job: int, unit: float) -> float:
    """Final utility of a job: the unit utility times K L (section 2)."""
    return unit * pool.jobs[job].width * pool.jobs[job].duration


@njit_inlined
def remaining_utility(pool: Pool, job: int) -> float:
    """Unit utility at completion over the time until then, of a running job (4.1, step 4)."""
    progress = pool.progress[job]
    return progress.unit_utility / (progress.end - pool.episode.time)


@njit_inlined
def in_turn(pool: Pool, job: int) -> bool:
    """Whether a job is of the project that starts jobs and decides."""
    return pool.options.projects == 1 or pool.jobs[job].project == pool.episode.project


@njit_inlined
def is_lower(pool: Pool, job: int) -> bool:
    """Whether a job is of a lower project than that, to which it is not there."""
    return pool.options.projects > 1 and pool.jobs[job].project < pool.episode.project


@njit_inlined
def begin_project(pool: Pool, project: int) -> None:
    """Lets the jobs of a project start, and then its machines decide, the first one first."""
    options, episode = pool.options, pool.episode
    episode.project, episode.turn, episode.stage = project, 0, PREEMPTING
    if options.projects == 1:
        return
    for number in range(options.machines):
        server = server_of(pool, number)
        machine = server.machine
        machine.free, machine.lower = options.processors, 0
        machine.considered, machine.acted = False, False
        for k in range(machine.num_running):
            job = server.running[k]
            held = pool.progress[job].held
            if is_lower(pool, job):
                machine.lower += held
            else:
                machine.free -= held


@njit_inlined
def next_project(pool: Pool) -> bool:
    """Goes on to the next lower project at this instant; returns whether there is one.

    If there is, free processors are still to be given away.
    """
    if pool.episode.project == 0:
        return False
    begin_project(pool, pool.episode.project - 1)
    return True


@njit_inlined
def enqueue(pool: Pool, job: int) -> None:
    """Puts a job into the queue, which stays in order of arrival."""
    waiting, place = pool.waiting, pool.episode.num_waiting
    while place > 0 and waiting[place - 1] > job:
        waiting[place] = waiting[place - 1]
        place -= 1
    waiting[place] = job
    pool.episode.num_waiting += 1


@njit_inlined
def start_job(server: Server, job: int, processors: int) -> None:
    """Starts or resumes a waiting job, on processors that are idle or held by lower projects."""
    pool, episode, machine = server.pool, server.pool.episode, server.machine
    preempt_lower(server, processors)
    hold(pool, job, processors)
    if pool.progress[job].start < 0:
        pool.progress[job].start = episode.time
    machine.free -= processors
    server.running[machine.num_running] = job
    machine.num_running += 1
    machine.changed = True
    # Jobs behind it in the queue move up.
    place = 0
    while pool.waiting[place] != job:
        place += 1
    episode.num_waiting -= 1
    for i in range(place, episode.num_waiting):
        pool.waiting[i] = pool.waiting[i + 1]


@njit_inlined
def hold(pool: Pool, job: int, processors: int) -> None:
    """Gives a job so many processors from now on, and notes when it will finish on them."""
    progress, now = pool.progress[job], pool.episode.time
    progress.end = now + steps_on(pool, job, processors)
    progress.held, progress.since = processors, now
    progress.unit_utility = unit_utility_at(pool, job, progress.end)


@njit_inlined
def preempt_job(server: Server, job: int) -> None:
    """Puts a running job back into the queue; it keeps what it has done."""
    pool, machine, running = server.pool, server.machine, server.running
    record_progress(server, job)
    if is_lower(pool, job):  # what it held was free to the project already
        machine.lower -= pool.progress[job].held
    else:
        machine.free += pool.progress[job].held
    pool.progress[job].held = 0
    # Jobs that started after it move up.
    place = 0
    while running[place] != job:
        place += 1
    machine.num_running -= 1
    for i in range(place, machine.num_running):
        running[i] = running[i + 1]
    enqueue(pool, job)


@njit_inlined
def preempt_lower(server: Server, processors: int) -> None:
    """Preempts jobs of lower projects until so many processors are idle (section 6).

    Those of the lowest remaining utility go first, however high that is.
    """
    pool, machine, running = server.pool, server.machine, server.running
    # Without projects nothing is lower. Saying so makes worlds of one a tenth faster.
    while pool.options.projects > 1 and machine.free - machine.lower < processors:
        victim, least = -1, np.inf
        for k in range(machine.num_running):
            job = running[k]
            if not is_lower(pool, job):
                continue
            remaining = remaining_utility(pool, job)
            if remaining < least or (remaining == least and job < victim):
                victim, least = job, remaining
        preempt_job(server, victim)


@njit_inlined
def record_progress(server: Server, job: int) -> None:
    """Writes down what a running job has done on its processors up to now.

    The clock is whole: in its last step a squeezed job may need fewer processors than it holds, and
    only those that it needs count as used.
    """
    progress, now = server.pool.progress[job], server.pool.episode.time
    if progress.since == now:
        return
    done = progress.held * (now - progress.since)
    spare = max(done - progress.work_left, 0)
    # A piece up to the last full step, and one for the last step where that is used in part.
    full = now - 1 if spare > 0 else now
    _add_piece(server, job, progress.since, full, progress.held)
    _add_piece(server, job, full, now, progress.held - spare)
    progress.work_left -= done - spare
    progress.since = now


@njit_inlined
def _add_piece(server: Server, job: int, begin: int, end: int, processors: int) -> None:
    if end == begin:
        return
    options, episode, machine = server.pool.options, server.pool.episode, server.machine
    piece = server.pieces[machine.num_pieces]
    piece[0], piece[1], piece[2], piece[3] = job, begin, end, processors
    machine.num_pieces += 1
    machine.busy += (end - begin) * processors
    # The use of the machines gains something inside the arrival window.
    inside = min(end, episode.window) - min(begin, episode.window)
    gain = server.pool.costs.utilization_gain * inside * processors
    episode.pending_reward += gain / (options.processors * options.machines)


@njit_inlined
def has_room(pool: Pool) -> bool:
    """Whether each machine can note all pieces that one instant or one decision can add."""
    most = 6 * pool.options.processors + 8
    for number in range(pool.options.machines):
        num_pieces = pool.machines[pool.first_machine + number].num_pieces
        if num_pieces + most > pool.pieces.shape[1]:
            return False
    return True


@njit_inlined
def begin_episode(pool: Pool, order: int) -> None:
    """Puts an episode back to where its first instant, time 0, is still to come."""
    options, episode = pool.options, pool.episode
    # No job has arrived, and none has done any work.
    for job in range(episode.num_jobs):
        progress = pool.progress[job]
        progress.work_left = pool.jobs[job].width * pool.jobs[job].duration
        progress.held, progress.since, progress.start, progress.finish = 0, 0, -1, -1
    # All machines are idle.
    for number in range(options.machines):
        machine = server_of(pool, number).machine
        machine.free, machine.num_running, machine.num_pieces = options.processors, 0, 0
        machine.lower, machine.busy, machine.earned = 0, 0, 0.0
        pool.gained[pool.first_machine + number] = 0.0
        machine.changed, machine.considered, machine.acted = False, False, False
    # An episode without jobs has ended already.
    episode.time, episode.num_arrived, episode.num_waiting, episode.project = 0, 0, 0, 0
    episode.order, episode.turn, episode.stage = order, options.machines - 1, BEGINNING
    episode.active, episode.truncated = episode.num_jobs > 0, False
    episode.decided, episode.paused, episode.pending_reward = False, False, 0.0


@njit_inlined
def next_instant(pool: Pool) -> bool:
    """Lets time pass until a job finishes or arrives; returns whether the episode goes on.

    If it does, free processors are still to be given away.
    """
    options, episode = pool.options, pool.episode
    # The next instant is that of the first finish on a machine or of the next arrival.
    next_finish = NEVER
    for number in range(options.machines):
        server = server_of(pool, number)
        machine = server.machine
        machine.changed, machine.considered, machine.acted = False, False, False
        for k in range(machine.num_running):
            next_finish = min(next_finish, pool.progress[server.running[k]].end)
    now = next_finish
    if episode.num_arrived < episode.num_jobs:
        now = min(now, pool.jobs[episode.num_arrived].arrival)
    if episode.stage == BEGINNING:
        now = 0
    elif now == NEVER or now > options.max_time:
        end_episode(pool, now < NEVER)
        return False
    episode.pending_reward -= pool.costs.busy_cost * (now - episode.time)
    episode.time = now
    # First jobs finish; at an instant of arrivals alone no job has to be looked at.
    if now == next_finish:
        for number in range(options.machines):
            finish_jobs(server_of(pool, number), number)
    # Then jobs arrive; those of one jobset are sorted by arrival.
    while episode.num_arrived < episode.num_jobs and pool.jobs[episode.num_arrived].arrival == now:
        enqueue(pool, episode.num_arrived)
        episode.num_arrived += 1
    # The highest project begins, and the first machine decides first.
    begin_project(pool, options.projects - 1)
    return True


@njit_inlined
def finish_jobs(server: Server, number: int) -> None:
    """Lets the jobs of a machine, by its number too, finish whose work is done now."""
    pool, episode, machine = server.pool, server.pool.episode, server.machine
    kept = 0
    for k in range(machine.num_running):
        job = server.running[k]
        progress = pool.progress[job]
        if progress.end > episode.time:
            server.running[kept] = job
            kept += 1
            continue
        # It gives its processors back.
        record_progress(server, job)
        machine.free += progress.held
        progress.held, progress.finish = 0, episode.time
        machine.changed = True
        # Its utility counts for the machine, and for the reward as the objective has it.
        utility = final_utility(pool, job, progress.unit_utility)
        machine.earned += utility
        if pool.options.projects > 1:
            pool.gained[pool.first_machine + number, pool.jobs[job].project] += utility
        column = episode.first_job + job
        gain = pool.costs.utility_gain[column] * utility + pool.costs.finish_gain[column]
        episode.pending_reward += gain
        charge(pool, job)
    machine.num_running = kept


@njit_inlined
def charge(pool: Pool, job: int) -> None:
    """Takes what a job has cost that was in the system until now."""
    episode, costs = pool.episode, pool.costs
    column = episode.first_job + job
    completion = episode.time - pool.jobs[job].arrival
    episode.pending_reward -= costs.rate[column] * completion
    for k in range(costs.late_rate.shape[0]):
        late = max(completion - costs.late_after[k, column], 0)
        episode.pending_reward -= costs.late_rate[k, column] * late


@njit_inlined
def end_episode(pool: Pool, cut: bool) -> None:
    """Writes down what jobs have done and cost until now, or until `max_time` if that cuts them."""
    options, episode = pool.options, pool.episode
    if cut:
        episode.pending_reward -= pool.costs.busy_cost * (options.max_time - episode.time)
        episode.time = options.max_time
    # Jobs that run have done something since their last piece.
    for number in range(options.machines):
        server = server_of(pool, number)
        for k in range(server.machine.num_running):
            record_progress(server, server.running[k])
    # Jobs that have not finished cost what they have cost so far.
    for job in range(episode.num_arrived):
        if pool.progress[job].finish < 0:
            charge(pool, job)
    episode.active, episode.truncated = False, cut
