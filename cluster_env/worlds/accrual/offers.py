"""What may be decided: the states that the server would be in (section 4.1, steps 2 to 11).

A state of the server is described by three numbers (section 3.3): x1, the unit utility that running
jobs are expected to reach, mean over the processors that they hold; x2, the steps until the first
of them finishes; x3, the processors that are idle. A candidate is a waiting job and the state that
the server would be in at once if that job were started, by preempting others or squeezed. What
happens afterwards with processors that preemption frees beyond need is not in it.
"""

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.accrual.arrays import (
    CANDIDATE,
    HEADER,
    MILLION,
    PASSING,
    PREEMPTING,
    SQUEEZING,
    Costs,
    Jobs,
    Machine,
    Rows,
)
from cluster_env.worlds.accrual.running import (
    begin_job,
    fill_victims,
    preempt_job,
    unit_at_end,
)

_AT = len(HEADER)
_SIZE = len(CANDIDATE)


@njit_inlined
def offer(m: Machine, jobs: Jobs, rows: Rows, r: int, whole: bool) -> int:
    """Writes the state of a row, with the candidates of the first stage that has any.

    Args:
        m: the machine.
        jobs: of all jobsets.
        rows: all episodes.
        r: the row.
        whole: whether all of the state is written, for a network, or what the paper's values need.

    Returns:
        How many there are; 0 if there is nothing more to decide at this instant.
    """
    while rows.of[r].stage < PASSING:
        count = 0
        if rows.of[r].num_waiting > 0:
            if rows.of[r].stage == PREEMPTING and m.preempt:
                count = _offer_preemption(m, jobs, rows, r, whole)
            elif rows.of[r].stage == SQUEEZING and m.squeeze and rows.of[r].free > 0:
                count = _offer_squeezing(m, jobs, rows, r, whole)
        if count > 0:
            _finish_state(jobs, rows, r, rows.of[r].stage + 1, count, whole)
            rows.of[r].considered = True
            return count
        rows.of[r].stage += 1
    return 0


@njit_inlined
def show_nothing(jobs: Jobs, rows: Rows, r: int) -> None:
    """Writes the state of a row in which nothing can be decided."""
    _finish_state(jobs, rows, r, 0, 0, True)


@njit_inlined
def take(m: Machine, jobs: Jobs, costs: Costs, rows: Rows, r: int, k: int) -> None:
    """Does what the k-th candidate says, for as many candidates as there are; else nothing."""
    stage = rows.of[r].stage
    rows.of[r].stage = stage + 1
    if stage >= PASSING or k >= m.candidates or rows.states[r, _AT + k * _SIZE] == 0:
        return
    job = int(rows.shown[r, k])
    size = jobs.of[rows.of[r].first + job].size
    if stage == PREEMPTING:
        fill_victims(rows, r)
        v = 0
        while rows.of[r].free < size:
            preempt_job(m, costs, rows, r, rows.work.order[v])
            v += 1
    begin_job(jobs, rows, r, job, min(size, rows.of[r].free))
    rows.of[r].made = True


@njit_inlined
def server_state(rows: Rows, r: int) -> tuple[float, int, int]:
    """x1, x2 and x3 of a server as it is; x1 and x2 are 0 where nothing runs."""
    base, now = rows.of[r].place, rows.of[r].time
    weighted, held, soonest = 0.0, 0, 0
    for k in range(rows.of[r].num_running):
        at = base + rows.running[r, k]
        steps = rows.job[at].end - now
        weighted += rows.job[at].held * rows.job[at].unit
        held += rows.job[at].held
        soonest = steps if soonest == 0 else min(soonest, steps)
    return (weighted / held if held else 0.0), soonest, rows.of[r].free


@njit_inlined
def _offer_preemption(m: Machine, jobs: Jobs, rows: Rows, r: int, whole: bool) -> int:
    """Waiting jobs that need not preempt a job of a higher remaining utility than their own."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    running, free = rows.of[r].num_running, rows.of[r].free
    fill_victims(rows, r)
    urgency = rows.work.urgency
    # Of the jobs that stay if the first v are preempted: weights, processors, soonest finish.
    weights, processors, soonest = rows.work.weights, rows.work.held, rows.work.soonest
    weights[running], processors[running], soonest[running] = 0.0, 0, 0
    for v in range(running - 1, -1, -1):
        at = base + rows.work.order[v]
        steps = rows.job[at].end - now
        weights[v] = weights[v + 1] + rows.job[at].held * rows.job[at].unit
        processors[v] = processors[v + 1] + rows.job[at].held
        soonest[v] = steps if soonest[v + 1] == 0 else min(soonest[v + 1], steps)
    count = 0
    for k in range(rows.of[r].num_waiting):
        job = int(rows.waiting[base + k])
        j = first + job
        size = jobs.of[j].size
        steps = -(-rows.job[base + job].left // size)
        unit = unit_at_end(jobs, j, now + steps)
        v = 0
        while free + processors[0] - processors[v] < size and urgency[v] <= unit / steps:
            v += 1
        room = free + processors[0] - processors[v]
        if room < size:
            continue
        mean = (weights[v] + size * unit) / (processors[v] + size)
        first_end = steps if soonest[v] == 0 else min(soonest[v], steps)
        place = _show(m, jobs, rows, r, count, job, mean, first_end, room - size, unit, steps)
        if whole and place >= 0:
            lost = 0.0
            for k_lost in range(v):
                lost += _loss(jobs, rows, r, rows.work.order[k_lost], steps)
            _add_prospects(jobs, rows, r, place, soonest[0], lost)
        count = min(count + 1, m.candidates)
    return count


@njit_inlined
def _offer_squeezing(m: Machine, jobs: Jobs, rows: Rows, r: int, whole: bool) -> int:
    """All waiting jobs, each on all processors that are free."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    mean, soonest, free = server_state(rows, r)
    held = m.processors - free
    count = 0
    for k in range(rows.of[r].num_waiting):
        job = int(rows.waiting[base + k])
        steps = -(-rows.job[base + job].left // free)
        unit = unit_at_end(jobs, first + job, now + steps)
        then = (mean * held + unit * free) / m.processors
        first_end = steps if soonest == 0 else min(soonest, steps)
        place = _show(m, jobs, rows, r, count, job, then, first_end, 0, unit, steps)
        if whole and place >= 0:
            _add_prospects(jobs, rows, r, place, soonest, 0.0)
        count = min(count + 1, m.candidates)
    return count


@njit_inlined
def _loss(jobs: Jobs, rows: Rows, r: int, job: int, steps: int) -> float:
    """Final utility that a running job loses if it is held up for so many steps."""
    at, j = rows.of[r].place + job, rows.of[r].first + job
    later = unit_at_end(jobs, j, rows.job[at].end + steps)
    return (rows.job[at].unit - later) * jobs.of[j].size * jobs.of[j].duration


@njit_inlined
def _add_prospects(jobs: Jobs, rows: Rows, r: int, place: int, soonest: int, lost: float) -> None:
    """Adds to a candidate what becomes of its job otherwise, and of those that it preempts."""
    job = rows.shown[r, place]
    j, now = rows.of[r].first + job, rows.of[r].time
    end = now - (-rows.job[rows.of[r].place + job].left // jobs.of[j].size)
    state, at = rows.states[r], _AT + place * _SIZE
    state[at + 7] = round(unit_at_end(jobs, j, end) * MILLION)
    state[at + 8] = round(unit_at_end(jobs, j, end + soonest) * MILLION)
    state[at + 9] = _whole(lost)


@njit_inlined
def _whole(utility: float) -> int:
    """The nearest whole number that a state can hold."""
    return round(min(utility, 2.0**31 - 2))


@njit_inlined
def _show(
    m: Machine,
    jobs: Jobs,
    rows: Rows,
    r: int,
    count: int,
    job: int,
    x1: float,
    x2: int,
    x3: int,
    unit: float,
    steps: int,
) -> int:
    """Adds a candidate; where there are too many, the job that would be worth least is left out.

    Returns:
        Its place; -1 if it is the one that is left out.
    """
    first = rows.of[r].first
    place = count
    if count == m.candidates:
        place, least = -1, unit * jobs.of[first + job].size * jobs.of[first + job].duration
        for k in range(count):
            other = first + rows.shown[r, k]
            unit_of_other = rows.states[r, _AT + k * _SIZE + 4] / MILLION
            worth = unit_of_other * jobs.of[other].size * jobs.of[other].duration
            if worth < least:
                place, least = k, worth
        if place < 0:
            return -1
    at = _AT + place * _SIZE
    state = rows.states[r]
    state[at] = 1
    state[at + 1] = round(x1 * MILLION)
    state[at + 2], state[at + 3] = x2, x3
    state[at + 4] = round(unit * MILLION)
    state[at + 5], state[at + 6] = jobs.of[first + job].size, steps
    rows.shown[r, place] = job
    return place


@njit_inlined
def _finish_state(jobs: Jobs, rows: Rows, r: int, stage: int, count: int, whole: bool) -> None:
    """Writes the header, and zeros where no candidate is."""
    base, first, now = rows.of[r].place, rows.of[r].first, rows.of[r].time
    state, end = rows.states[r], _AT + count * _SIZE
    x1, x2, x3 = server_state(rows, r)
    state[0], state[1], state[2], state[3] = stage, round(x1 * MILLION), x2, x3
    if not whole:
        if end < state.size:
            state[end] = 0  # no candidate is present from there on
        return
    work, slope, units, promised = 0, 0, 0.0, 0.0
    for k in range(rows.of[r].num_waiting):
        at = base + rows.waiting[base + k]
        j = first + rows.waiting[base + k]
        work += rows.job[at].left
        unit = unit_at_end(jobs, j, now - (-rows.job[at].left // jobs.of[j].size))
        units += unit
        slope += jobs.of[j].size if unit > 0 else 0
    for k in range(rows.of[r].num_running):
        at, j = base + rows.running[r, k], first + rows.running[r, k]
        promised += rows.job[at].unit * jobs.of[j].size * jobs.of[j].duration
    waiting = rows.of[r].num_waiting
    state[4], state[5] = waiting, min(work, 2**31 - 1)
    state[6] = round(units / waiting * MILLION) if waiting else 0
    state[7], state[8] = min(slope, 2**31 - 1), _whole(promised)
    state[end:] = 0
