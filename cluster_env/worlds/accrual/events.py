"""What happens to jobs from one instant to the next: they arrive, run, are preempted and finish."""

from cluster_env.core.compiled import njit_inlined
from cluster_env.objectives.utility import unit_utility
from cluster_env.worlds.accrual.state import BEGINNING, PREEMPTING, Pool, Server, server_of

NEVER = 2**62


@njit_inlined
def unit_utility_at(server: Server, job: int, end: int) -> float:
    """Unit utility of a job that finishes at a clock."""
    own = server.jobs[job]
    return unit_utility(server.functions[job], end - own.arrival, own.duration)


@njit_inlined
def final_utility(server: Server, job: int, unit: float) -> float:
    """Final utility of a job: the unit utility times K L (section 2)."""
    return unit * server.jobs[job].size * server.jobs[job].duration


@njit_inlined
def steps_on(server: Server, job: int, processors: int) -> int:
    """Steps that a job still runs on so many processors; the last one may be used in part."""
    return -(-server.progress[job].work_left // processors)


@njit_inlined
def hold(server: Server, job: int, processors: int) -> None:
    """Gives a job so many processors from now on, and notes when it will finish on them."""
    own, now = server.progress[job], server.episode.time
    own.end = now + steps_on(server, job, processors)
    own.held, own.since = processors, now
    own.unit_utility = unit_utility_at(server, job, own.end)


@njit_inlined
def start_job(server: Server, job: int, processors: int) -> None:
    """Starts or resumes a waiting job."""
    episode, machine, waiting = server.episode, server.machine, server.waiting
    hold(server, job, processors)
    if server.progress[job].start < 0:
        server.progress[job].start = episode.time
    machine.free -= processors
    server.running[machine.num_running] = job
    machine.num_running += 1
    machine.changed = True
    # Those behind it in the queue move up.
    k = 0
    while waiting[k] != job:
        k += 1
    episode.num_waiting -= 1
    for i in range(k, episode.num_waiting):
        waiting[i] = waiting[i + 1]


@njit_inlined
def enqueue(pool: Pool | Server, job: int) -> None:
    """Puts a job into the queue, which stays in order of arrival."""
    waiting, k = pool.waiting, pool.episode.num_waiting
    while k > 0 and waiting[k - 1] > job:
        waiting[k] = waiting[k - 1]
        k -= 1
    waiting[k] = job
    pool.episode.num_waiting += 1


@njit_inlined
def record_progress(server: Server, job: int) -> None:
    """Writes down what a running job has done on its processors up to now.

    The clock is whole: in its last step a squeezed job may need fewer processors than it holds, and
    only those that it needs count as used.
    """
    own, now = server.progress[job], server.episode.time
    if own.since == now:
        return
    done = own.held * (now - own.since)
    spare = max(done - own.work_left, 0)
    # Two pieces if the last step is used in part, of which the first may be empty; else one.
    full = now - 1 if spare > 0 else now
    _add_piece(server, job, own.since, full, own.held)
    _add_piece(server, job, full, now, own.held - spare)
    own.work_left -= done - spare
    own.since = now


@njit_inlined
def _add_piece(server: Server, job: int, begin: int, end: int, processors: int) -> None:
    if end == begin:
        return
    episode, machine = server.episode, server.machine
    piece = server.pieces[machine.num_pieces]
    piece[0], piece[1], piece[2], piece[3] = job, begin, end, processors
    machine.num_pieces += 1
    machine.busy += (end - begin) * processors
    # What the use of the machines gains, inside the arrival window.
    inside = min(end, episode.window) - min(begin, episode.window)
    capacity = server.options.processors * server.options.machines
    episode.pending_reward += server.costs.utilization_gain * inside * processors / capacity


@njit_inlined
def preempt_job(server: Server, job: int) -> None:
    """Puts a running job back into the queue; it keeps what it has done."""
    machine, running = server.machine, server.running
    record_progress(server, job)
    machine.free += server.progress[job].held
    server.progress[job].held = 0
    k = 0
    while running[k] != job:
        k += 1
    machine.num_running -= 1
    for i in range(k, machine.num_running):
        running[i] = running[i + 1]
    enqueue(server, job)


@njit_inlined
def has_room(pool: Pool) -> bool:
    """Whether each machine can note all pieces that one instant or one decision can add."""
    most, fits = 6 * pool.options.processors + 8, True
    for number in range(pool.options.machines):
        num_pieces = pool.machines[pool.first_machine + number].num_pieces
        fits = fits and num_pieces + most <= pool.pieces.shape[1]
    return fits


@njit_inlined
def begin_episode(pool: Pool, order: int) -> None:
    """Puts an episode back to where its first instant, time 0, is still to come.

    Args:
        pool: the episode.
        order: in which jobs start that fit.
    """
    episode, options = pool.episode, pool.options
    for job in range(episode.num_jobs):
        own = pool.progress[job]
        own.work_left = pool.jobs[job].size * pool.jobs[job].duration
        own.held, own.since, own.start, own.finish = 0, 0, -1, -1
    for number in range(options.machines):
        machine = server_of(pool, number).machine
        machine.free, machine.num_running, machine.num_pieces = options.processors, 0, 0
        machine.busy, machine.earned = 0, 0.0
        machine.changed, machine.considered, machine.acted = False, False, False
    episode.time, episode.num_arrived, episode.num_waiting = 0, 0, 0
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
        server.machine.changed, server.machine.considered = False, False
        server.machine.acted = False
        for k in range(server.machine.num_running):
            next_finish = min(next_finish, server.progress[server.running[k]].end)
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
    # First jobs finish, on one machine after the other.
    if now == next_finish:
        for number in range(options.machines):
            finish_jobs(server_of(pool, number))
    # Then jobs arrive.
    while episode.num_arrived < episode.num_jobs and pool.jobs[episode.num_arrived].arrival == now:
        enqueue(pool, episode.num_arrived)
        episode.num_arrived += 1
    # Later the first machine decides.
    episode.turn, episode.stage = 0, PREEMPTING
    return True


@njit_inlined
def finish_jobs(server: Server) -> None:
    """Lets the running jobs finish whose work is done now."""
    episode, machine, costs = server.episode, server.machine, server.costs
    kept = 0
    for k in range(machine.num_running):
        job = server.running[k]
        own = server.progress[job]
        if own.end > episode.time:
            server.running[kept] = job
            kept += 1
            continue
        record_progress(server, job)
        machine.free += own.held
        own.held, own.finish = 0, episode.time
        machine.changed = True
        # What it is worth counts for the machine, and by the objective for the reward.
        utility = final_utility(server, job, own.unit_utility)
        machine.earned += utility
        column = episode.first_job + job
        gain = costs.utility_gain[column] * utility + costs.finish_gain[column]
        episode.pending_reward += gain
        charge(server, job)
    machine.num_running = kept


@njit_inlined
def charge(pool: Pool | Server, job: int) -> None:
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
    for number in range(options.machines):
        server = server_of(pool, number)
        for k in range(server.machine.num_running):
            record_progress(server, server.running[k])
    for job in range(episode.num_arrived):
        if pool.progress[job].finish < 0:
            charge(pool, job)
    episode.active, episode.truncated = False, cut
