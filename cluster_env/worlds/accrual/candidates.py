"""What may be decided: the states that a machine would be in (section 4.1, steps 2 to 11).

A state of a machine is described by three numbers (section 3.3): x1, the unit utility that running
jobs are expected to reach, mean over the processors that they hold; x2, the steps until the first
of them finishes; x3, the processors that are idle. Jobs of lower projects are not in it: to the
project that decides, what they hold is idle. A candidate is a waiting job and the state that
the machine would be in at once if that job were started, by preempting others or squeezed. What
happens afterwards with processors that preemption frees beyond need is not in it.
"""

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.accrual.events import (
    final_utility,
    in_turn,
    is_lower,
    preempt_job,
    remaining_utility,
    start_job,
    steps_on,
    unit_utility_at,
)
from cluster_env.worlds.accrual.state import (
    CANDIDATE,
    HEADER,
    MILLION,
    PASSING,
    PREEMPTING,
    SQUEEZING,
    Pool,
    Server,
    candidate_of,
)

_MOST = 2**31 - 1  # that a state can hold


@njit_inlined
def list_candidates(server: Server, whole: bool) -> int:
    """Writes the state of a machine, with the candidates of the first stage that has any.

    All of it if it is ``whole``, for a network, or what the paper's values need. Returns how many
    candidates there are; 0 if there is nothing more to decide at this instant.
    """
    options, episode = server.pool.options, server.pool.episode
    if episode.num_waiting == 0:
        return 0
    while episode.stage < PASSING:
        count = 0
        if episode.stage == PREEMPTING and options.preempt:
            count = list_preemptions(server, whole)
        elif episode.stage == SQUEEZING and options.squeeze and server.machine.free > 0:
            count = list_squeezes(server, whole)
        if count > 0:
            write_header(server, episode.stage + 1, count, whole)
            server.machine.considered = True
            return count
        episode.stage += 1
    return 0


@njit_inlined
def apply_candidate(server: Server, k: int) -> None:
    """Does what the k-th candidate says, for as many candidates as there are; else nothing."""
    pool, stage = server.pool, server.pool.episode.stage
    pool.episode.stage = stage + 1
    if stage >= PASSING or not 0 <= k < pool.options.candidates:
        return
    if candidate_of(pool.state, k)[CANDIDATE.present] == 0:
        return
    job = pool.shown[k]
    size = pool.jobs[job].width
    # Preempted jobs make room for it; where it is squeezed, it takes what is free.
    if stage == PREEMPTING:
        order_victims(server)
        v = 0
        while server.machine.free < size:
            preempt_job(server, pool.scratch.order[v])
            v += 1
    start_job(server, job, min(size, server.machine.free))
    server.machine.acted = True


@njit_inlined
def machine_state(server: Server) -> tuple[float, int, int]:
    """x1, x2 and x3 of a machine as it is; x1 and x2 are 0 where nothing runs."""
    pool, weighted, held, soonest = server.pool, 0.0, 0, 0
    for k in range(server.machine.num_running):
        job = server.running[k]
        if is_lower(pool, job):
            continue
        progress = pool.progress[job]
        steps = progress.end - pool.episode.time
        weighted += progress.held * progress.unit_utility
        held += progress.held
        soonest = steps if soonest == 0 else min(soonest, steps)
    return (weighted / held if held else 0.0), soonest, server.machine.free


@njit_inlined
def order_victims(server: Server) -> int:
    """Writes the project's running jobs, as they are preempted, into `Scratch.order`.

    That is by rising `remaining_utility`, which is written beside it, into `Scratch.urgency`.
    Returns how many there are.
    """
    pool, order, urgency = server.pool, server.pool.scratch.order, server.pool.scratch.urgency
    count = 0
    for k in range(server.machine.num_running):
        job = server.running[k]
        if not in_turn(pool, job):
            continue
        remaining = remaining_utility(pool, job)
        # It moves up past jobs that are more urgent, or as urgent and of a higher number.
        i = count
        while i > 0 and (
            urgency[i - 1] > remaining or (urgency[i - 1] == remaining and order[i - 1] > job)
        ):
            order[i], urgency[i] = order[i - 1], urgency[i - 1]
            i -= 1
        order[i], urgency[i] = job, remaining
        count += 1
    return count


@njit_inlined
def list_preemptions(server: Server, whole: bool) -> int:
    """Waiting jobs that need not preempt a job of a higher remaining utility than their own."""
    pool, free, now = server.pool, server.machine.free, server.pool.episode.time
    most = order_victims(server)
    victims, urgency = pool.scratch.order, pool.scratch.urgency
    # Of the jobs that stay if the first v are preempted: their unit utility times processors, their
    # processors, and the steps until the first of them finishes.
    weights, held, soonest = pool.scratch.weights, pool.scratch.held, pool.scratch.soonest
    weights[most], held[most], soonest[most] = higher_jobs(server)
    for v in range(most - 1, -1, -1):
        progress = pool.progress[victims[v]]
        steps = progress.end - now
        weights[v] = weights[v + 1] + progress.held * progress.unit_utility
        held[v] = held[v + 1] + progress.held
        soonest[v] = steps if soonest[v + 1] == 0 else min(soonest[v + 1], steps)
    count = 0
    for k in range(pool.episode.num_waiting):
        job = pool.waiting[k]
        if not in_turn(pool, job):
            continue
        size = pool.jobs[job].width
        steps = steps_on(pool, job, size)
        unit = unit_utility_at(pool, job, now + steps)
        # As few victims as make room for it, none of which may be more urgent.
        v = 0
        while v < most and free + held[0] - held[v] < size and urgency[v] <= unit / steps:
            v += 1
        room = free + held[0] - held[v]
        if room < size:
            continue
        # The machine without them and with the job.
        mean = (weights[v] + size * unit) / (held[v] + size)
        first_end = steps if soonest[v] == 0 else min(soonest[v], steps)
        place = add_candidate(pool, count, job, mean, first_end, room - size, unit, steps)
        if whole and place >= 0:
            # What the victims lose if they wait until the job is done.
            lost = 0.0
            for victim in victims[:v]:
                progress = pool.progress[victim]
                later = unit_utility_at(pool, victim, progress.end + steps)
                lost += final_utility(pool, victim, progress.unit_utility - later)
            add_prospects(pool, place, soonest[0], lost)
        count = min(count + 1, pool.options.candidates)
    return count


@njit_inlined
def higher_jobs(server: Server) -> tuple[float, int, int]:
    """Unit utility times processors, processors, and steps to the first finish of higher projects.

    No job of the project can preempt theirs. All are 0 where none runs.
    """
    pool, weighted, held, soonest = server.pool, 0.0, 0, 0
    if pool.episode.project < pool.options.projects - 1:
        for k in range(server.machine.num_running):
            job = server.running[k]
            if in_turn(pool, job) or is_lower(pool, job):
                continue
            progress = pool.progress[job]
            steps = progress.end - pool.episode.time
            weighted += progress.held * progress.unit_utility
            held += progress.held
            soonest = steps if soonest == 0 else min(soonest, steps)
    return weighted, held, soonest


@njit_inlined
def list_squeezes(server: Server, whole: bool) -> int:
    """All waiting jobs of the project, each on all processors that are free."""
    pool, processors = server.pool, server.pool.options.processors
    mean, soonest, free = machine_state(server)
    count = 0
    for k in range(pool.episode.num_waiting):
        job = pool.waiting[k]
        if not in_turn(pool, job):
            continue
        steps = steps_on(pool, job, free)
        unit = unit_utility_at(pool, job, pool.episode.time + steps)
        # The machine with the job: no processor is idle.
        then = (mean * (processors - free) + unit * free) / processors
        first_end = steps if soonest == 0 else min(soonest, steps)
        place = add_candidate(pool, count, job, then, first_end, 0, unit, steps)
        if whole and place >= 0:
            add_prospects(pool, place, soonest, 0.0)
        count = min(count + 1, pool.options.candidates)
    return count


@njit_inlined
def add_candidate(
    pool: Pool, count: int, job: int, x1: float, x2: int, x3: int, unit: float, steps: int
) -> int:
    """Adds a candidate; where there are too many, the job that would be worth least is left out.

    x1, x2 and x3 are of the machine if it were taken; the job would reach a unit utility in so many
    steps. Returns its place; -1 if it is the one that is left out.
    """
    place = count
    if count == pool.options.candidates:
        # It takes the place of the job that would be worth least, unless it is that itself.
        place, least = -1, final_utility(pool, job, unit)
        for k in range(count):
            unit_of_other = candidate_of(pool.state, k)[CANDIDATE.job_utility] / MILLION
            utility = final_utility(pool, pool.shown[k], unit_of_other)
            if utility < least:
                place, least = k, utility
        if place < 0:
            return -1
    pool.shown[place] = job
    candidate = candidate_of(pool.state, place)
    candidate[CANDIDATE.present] = 1
    candidate[CANDIDATE.unit_utility] = round(x1 * MILLION)
    candidate[CANDIDATE.time_left], candidate[CANDIDATE.idle] = x2, x3
    candidate[CANDIDATE.job_utility] = round(unit * MILLION)
    candidate[CANDIDATE.size], candidate[CANDIDATE.steps] = pool.jobs[job].width, steps
    return place


@njit_inlined
def add_prospects(pool: Pool, place: int, soonest: int, lost: float) -> None:
    """Adds to a candidate what becomes of its job otherwise, and of those that it preempts."""
    job, candidate = pool.shown[place], candidate_of(pool.state, place)
    end = pool.episode.time + steps_on(pool, job, pool.jobs[job].width)
    candidate[CANDIDATE.full_utility] = round(unit_utility_at(pool, job, end) * MILLION)
    candidate[CANDIDATE.wait_utility] = round(unit_utility_at(pool, job, end + soonest) * MILLION)
    candidate[CANDIDATE.lost] = whole_utility(lost)


@njit_inlined
def whole_utility(utility: float) -> int:
    """The nearest whole number that a state can hold."""
    return round(min(utility, 2.0**31 - 2))


@njit_inlined
def write_header(server: Server, stage: int, count: int, whole: bool) -> None:
    """Writes the header, and zeros where no candidate is.

    The stage is 1 + the one that is to be decided; 0 if nothing is.
    """
    pool, state = server.pool, server.pool.state
    end = len(HEADER) + count * len(CANDIDATE)
    x1, x2, x3 = machine_state(server)
    state[HEADER.stage], state[HEADER.unit_utility] = stage, round(x1 * MILLION)
    state[HEADER.time_left], state[HEADER.idle] = x2, x3
    if not whole:
        if end < state.size:
            state[end] = 0  # no candidate is present from there on
        return
    # What the jobs that wait could still gain, if they started now.
    num_waiting, work, slope, units = 0, 0, 0, 0.0
    for k in range(pool.episode.num_waiting):
        job = pool.waiting[k]
        if not in_turn(pool, job):
            continue
        num_waiting += 1
        size = pool.jobs[job].width
        unit = unit_utility_at(pool, job, pool.episode.time + steps_on(pool, job, size))
        work += pool.progress[job].work_left
        units += unit
        slope += size if unit > 0 else 0
    # What those that run will gain.
    promised = 0.0
    for k in range(server.machine.num_running):
        job = server.running[k]
        if not is_lower(pool, job):
            promised += final_utility(pool, job, pool.progress[job].unit_utility)
    state[HEADER.waiting], state[HEADER.waiting_work] = num_waiting, min(work, _MOST)
    state[HEADER.waiting_utility] = round(units / num_waiting * MILLION) if num_waiting else 0
    state[HEADER.slope], state[HEADER.promised] = min(slope, _MOST), whole_utility(promised)
    state[end:] = 0
