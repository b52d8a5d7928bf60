"""What happens from one instant to the next: jobs arrive, executors come and tasks end.

The rules of spark-sched-sim, in which Decima is trained and tested:

* A task that ends frees its executor for the next task of its stage.
* With the last task of a stage its executors are to be assigned, in one *round* of decisions, those
  that are still busy as well: they are *promised*, and go as soon as they are idle. If a child can
  begin now, those that wait at the job are assigned. At an arrival the common ones are.
* Executors that nobody took wait at their job, or if all of its tasks have begun, in the common
  pool.
* An executor that finds no task of its stage left helps another stage of its job, or of any job.

Where several executors could go, the one with the lowest number does.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.graphs.state import EXECUTOR_BITS, MOST_EXECUTORS, NOWHERE, Episode
from cluster_env.worlds.graphs.tables import (
    FIRST,
    FRESH,
    REST,
    draw,
    level_of,
    measured_duration,
)

NEVER = 2**62
RECENT = 20
"""Arrivals over which size and burstiness are observed."""


# Pools and promises.


@njit_inlined
def common_pool(episode: Episode) -> int:
    """The pool of executors that belong to no job."""
    return episode.record.num_jobs * episode.options.span


@njit_inlined
def job_pool(episode: Episode, job: int) -> int:
    """The pool of executors that wait at a job."""
    return (job + 1) * episode.options.span - 1


@njit_inlined
def job_of_pool(episode: Episode, pool: int) -> int:
    """The job that a pool belongs to, `NOWHERE` for the common one."""
    return pool // episode.options.span if pool < common_pool(episode) else NOWHERE


@njit_inlined
def num_free(episode: Episode) -> int:
    """Executors that are to be assigned."""
    source = episode.record.source
    return 0 if source < 0 else episode.stages[source].standing - episode.stages[source].owed


@njit_inlined
def num_idle(episode: Episode, pool: int) -> int:
    """Executors of a pool that run no task."""
    stage = episode.stages[pool]
    return stage.standing - (stage.tasks - stage.unstarted - stage.ended)


@njit_inlined
def enter_pool(episode: Episode, executor: int, pool: int) -> None:
    """Lets an executor change its pool."""
    record = episode.executors[executor]
    if record.pool >= 0:
        episode.stages[record.pool].standing -= 1
    if pool >= 0:
        episode.stages[pool].standing += 1
    record.pool = pool


@njit_inlined
def want(episode: Episode, target: int, count: int) -> None:
    """Counts tasks of a stage that nobody is to run yet, more or fewer."""
    job, stage = divmod(target, episode.options.span)
    episode.stages[target].wanted += count
    if episode.stages[target].wanted > 0:
        episode.jobs[job].wanting |= np.int64(1) << stage
    else:
        episode.jobs[job].wanting &= ~(np.int64(1) << stage)


@njit_inlined
def promise(episode: Episode, target: int, count: int) -> None:
    """Promises executors of the source to a stage, or that they go to the common pool."""
    record, promises, entry = episode.record, episode.promises, 0
    source = record.source
    while entry < record.num_promises and (
        promises[entry].source != source or promises[entry].target != target
    ):
        entry += 1
    if entry == record.num_promises:
        record.num_promises += 1
        promises[entry].source, promises[entry].target = source, target
        promises[entry].count = 0
    promises[entry].count += count
    owe(episode, source, target, count)


@njit_inlined
def keep_promise(episode: Episode, pool: int) -> int:
    """Takes one executor off the oldest promise of a pool; returns where it goes."""
    record, promises, entry = episode.record, episode.promises, 0
    while promises[entry].source != pool:
        entry += 1
    target = promises[entry].target
    promises[entry].count -= 1
    if promises[entry].count == 0:
        record.num_promises -= 1
        for i in range(entry, record.num_promises):
            promises[i] = promises[i + 1]
    owe(episode, pool, target, -1)
    return target


@njit_inlined
def owe(episode: Episode, pool: int, target: int, count: int) -> None:
    """Counts promised executors of a pool, more or fewer."""
    episode.stages[pool].owed += count
    if target != common_pool(episode):
        want(episode, target, -count)
        job = target // episode.options.span
        if job != job_of_pool(episode, pool):
            episode.jobs[job].held += count


@njit_inlined
def rest(episode: Episode, executor: int) -> None:
    """Lets an idle executor wait at its job, or in the common pool if that has no tasks left."""
    record = episode.executors[executor]
    if record.pool == common_pool(episode):
        return
    if episode.jobs[record.job].unstarted != 0:
        enter_pool(episode, executor, job_pool(episode, record.job))
        return
    leave_job(episode, executor, common_pool(episode))


@njit_inlined
def leave_job(episode: Episode, executor: int, pool: int) -> None:
    """Lets an executor belong to no job, in the common pool or on the way."""
    record = episode.executors[executor]
    enter_pool(episode, executor, pool)
    if record.job >= 0:
        episode.jobs[record.job].held -= 1
        episode.jobs[record.job].present -= 1
    record.job, record.stage = NOWHERE, NOWHERE


# Stages that can get executors.


@njit_inlined
def can_take(episode: Episode, job: int, stage: int) -> bool:
    """Whether a stage of a job can get executors.

    It wants some, was not picked in this round, and no parent wants any.
    """
    record = episode.jobs[job]
    if ((record.wanting & ~record.chosen) >> stage) & 1 == 0:
        return False
    return (episode.stages[job * episode.options.span + stage].parents & record.wanting) == 0


@njit_inlined
def job_in_turn(episode: Episode, own: int, i: int) -> int:
    """The i-th job that may get executors, from -1 on; `NOWHERE` if that one may get none.

    The executors' own job comes first, then others by arrival: those that do not have all already.
    """
    job = own if i < 0 else episode.here[i]
    if job < 0 or (i >= 0 and (job == own or episode.jobs[job].held >= episode.options.executors)):
        return NOWHERE
    return job if episode.jobs[job].wanting & ~episode.jobs[job].chosen != 0 else NOWHERE


@njit_inlined
def first_taker(episode: Episode, own: int, begin: int) -> int:
    """The first stage that can get executors, of jobs in turn; `NOWHERE` if there is none."""
    for i in range(begin, episode.record.num_here):
        job = job_in_turn(episode, own, i)
        if job >= 0:
            for stage in range(episode.jobs[job].num_stages):
                if can_take(episode, job, stage):
                    return job * episode.options.span + stage
    return NOWHERE


@njit_inlined
def first_candidate(episode: Episode) -> int:
    """The first stage that can get executors of the source, `NOWHERE` if there is none."""
    return first_taker(episode, job_of_pool(episode, episode.record.source), -1)


@njit_inlined
def substitute(episode: Episode, executor: int) -> int:
    """A stage for an executor that finds no task left at its own: at its job, or else anywhere.

    Where the first job of all has all executors, none of them helps another of its stages: the code
    of spark-sched-sim takes its number, 0, for no job.
    """
    own = episode.executors[executor].job
    trapped = (
        own == 0
        and episode.jobs[own].held >= episode.options.executors
        and job_of_pool(episode, episode.record.source) != own
    )
    return first_taker(episode, own, 0 if trapped else -1)


# Events, each of which belongs to an executor.


@njit_inlined
def add_event(episode: Episode, executor: int, until: int) -> None:
    """Lets something end for an executor that begins now.

    An event is one number, the time and then the executor, so that few bytes move to sort it in.
    """
    record, events = episode.record, episode.events
    episode.executors[executor].since = record.time
    # The next event stands last; among those of one instant that which was added first.
    place = record.num_events
    record.num_events += 1
    while place > 0 and events[place - 1] >> EXECUTOR_BITS <= until:
        events[place] = events[place - 1]
        place -= 1
    events[place] = until << EXECUTOR_BITS | executor


@njit_inlined
def next_time(episode: Episode) -> int:
    """When something happens next, `NEVER` if nothing will."""
    record, now = episode.record, NEVER
    if record.num_events > 0:
        now = episode.events[record.num_events - 1] >> EXECUTOR_BITS
    if record.num_arrived < record.num_jobs:
        now = min(now, episode.jobs[record.num_arrived].arrival)
    return now


# What executors do.


@njit_inlined
def send(episode: Episode, executor: int, target: int) -> None:
    """Sends an executor to a stage: it begins a task, moves, or waits at its job for parents."""
    if episode.stages[target].unstarted == 0:
        target = substitute(episode, executor)
        if target < 0:
            rest(episode, executor)
            return
    record, job = episode.executors[executor], target // episode.options.span
    if record.job != job:
        leave_job(episode, executor, NOWHERE)
        episode.jobs[job].held += 1
        want(episode, target, -1)
        record.target = target
        add_event(episode, executor, episode.record.time + episode.options.delay)
    elif episode.stages[target].parents & episode.jobs[job].unfinished != 0:
        record.stage = NOWHERE
        enter_pool(episode, executor, job_pool(episode, job))
    else:
        begin_task(episode, executor, target)


@njit_inlined
def begin_task(episode: Episode, executor: int, target: int) -> None:
    """Begins the next task of a stage on an executor of its job."""
    number, stage_number = divmod(target, episode.options.span)
    record, now = episode.executors[executor], episode.record.time
    job, stage = episode.jobs[number], episode.stages[target]
    enter_pool(episode, executor, target)
    lasting = duration_of(episode, executor, target)
    task = episode.tasks[stage.first_task + stage.tasks - stage.unstarted]
    stage.unstarted -= 1
    if stage.unstarted == 0:
        job.unstarted &= ~(np.int64(1) << stage_number)
    want(episode, target, -1)
    job.work_left -= stage.time
    if job.start < 0:
        job.start = now
    record.stage, record.target, record.busy = stage_number, target, True
    episode.record.busy += 1
    add_event(episode, executor, now + lasting)
    task[0], task[1], task[2] = now, now + lasting, executor


@njit_inlined
def duration_of(episode: Episode, executor: int, target: int) -> int:
    """The duration of the next task of a stage on an executor."""
    options, stage = episode.options, target % episode.options.span
    job, left = episode.jobs[target // options.span], episode.stages[target].unstarted - 1
    last = episode.executors[executor].stage
    value_draw = draw(job.seed, job.number, stage, 2 * left + 1)
    if job.row < 0:
        mean = episode.stages[target].time
        lasting = max(int(mean * (1.0 + options.spread * (2.0 * value_draw - 1.0)) + 0.5), 1)
        return lasting + options.warmup if last < 0 else lasting
    wave = FRESH if last < 0 else REST if last == stage else FIRST
    level = level_of(job.present, draw(job.seed, job.number, stage, 2 * left))
    return measured_duration(
        episode.durations, job.row + stage, level, wave, options.warmup, value_draw
    )


@njit_inlined
def end_task(episode: Episode, executor: int) -> None:
    """Lets the task of an executor end, and what follows from it."""
    record, one = episode.record, episode.executors[executor]
    target, span = one.target, episode.options.span
    number, bit = target // span, np.int64(1) << (target % span)
    job, stage = episode.jobs[number], episode.stages[target]
    pay_use(episode, one.since, record.time)
    one.busy = False
    record.busy -= 1
    stage.ended += 1
    if stage.unstarted > 0:
        send(episode, executor, target)
        return
    # The stage may have ended, its children may begin, and the job may be done.
    child_begins = False
    if stage.ended == stage.tasks:
        job.unfinished &= ~bit
        for child in range(job.num_stages):
            parents = episode.stages[number * span + child].parents
            if parents & bit != 0 and parents & job.unfinished == 0:
                child_begins = True
        if job.unfinished == 0:
            finish_job(episode, number)
    # The executor goes where it is promised, or waits for what its stage's executors are to do.
    if stage.owed > 0:
        goal = keep_promise(episode, target)
        if goal == common_pool(episode):
            rest(episode, executor)
        else:
            send(episode, executor, goal)
        if child_begins:
            record.source = job_pool(episode, number)
        return
    one.stage = NOWHERE
    record.source = target
    if child_begins:
        record.source = job_pool(episode, number)
        enter_pool(episode, executor, record.source)


@njit_inlined
def finish_job(episode: Episode, job: int) -> None:
    """Notes the finish of a job, and frees the executors that wait at it."""
    record = episode.record
    executor, left = -1, num_idle(episode, job_pool(episode, job))
    while left > 0:
        executor += 1
        if episode.executors[executor].pool == job_pool(episode, job):
            rest(episode, executor)
            left -= 1
    episode.jobs[job].finish = record.time
    kept = 0
    for i in range(record.num_here):
        if episode.here[i] != job:
            episode.here[kept] = episode.here[i]
            kept += 1
    record.num_here = kept
    column = episode.first_job + job
    record.rate = 0.0 if kept == 0 else record.rate - episode.costs.rate[column]
    record.pending_reward += episode.costs.finish_gain[column]
    pay_late(episode, job)


@njit_inlined
def arrive(episode: Episode) -> None:
    """Lets the next job arrive; the executors of the common pool are to be assigned."""
    record = episode.record
    job = record.num_arrived
    record.num_arrived += 1
    episode.here[record.num_here] = job
    record.num_here += 1
    record.rate += episode.costs.rate[episode.first_job + job]
    observe(episode)
    if episode.stages[common_pool(episode)].standing > 0:
        record.source = common_pool(episode)


@njit_inlined
def observe(episode: Episode) -> None:
    """Observes size and burstiness of the last `RECENT` arrivals.

    Burstiness is (s - m) / (s + m) of the gaps' deviation s and mean m: 0 for Poisson arrivals, -1
    for regular ones (Goh and Barabasi, EPL 81, 2008).
    """
    record, jobs = episode.record, episode.jobs
    last = record.num_arrived - 1
    first = max(last + 1 - RECENT, 0)
    size, mean, square = 0.0, 0.0, 0.0
    for job in range(first, last + 1):
        size += jobs[job].log_work
        if job > first:
            gap = float(jobs[job].arrival - jobs[job - 1].arrival)
            mean += gap
            square += gap * gap
    record.recent_log_work = size / (last + 1 - first)
    record.recent_burst = 0.0
    if mean > 0:
        count = last - first
        mean /= count
        deviation = np.sqrt(max(square / count - mean * mean, 0.0))
        record.recent_burst = (deviation - mean) / (deviation + mean)


# Rewards.


@njit_inlined
def pay_use(episode: Episode, begin: int, end: int) -> None:
    """Gains what the use of an executor in the arrival window is worth."""
    window = episode.record.window
    inside = max(min(end, window) - begin, 0)
    gain = episode.costs.utilization_gain / episode.options.executors
    episode.record.pending_reward += gain * inside


@njit_inlined
def pay_late(episode: Episode, job: int) -> None:
    """Charges what a job costs that was here for long."""
    record, costs = episode.record, episode.costs
    column = episode.first_job + job
    completion = record.time - episode.jobs[job].arrival
    for k in range(costs.late_rate.shape[0]):
        late = max(completion - costs.late_after[k, column], 0)
        record.pending_reward -= costs.late_rate[k, column] * late


# The course of an episode.


@njit_inlined
def next_event(episode: Episode) -> bool:
    """Lets the next event happen; returns whether the episode goes on.

    If it does, a round of decisions may have begun.
    """
    record = episode.record
    now = next_time(episode)
    if now == NEVER:
        assign_stranded(episode)
        return True
    if now > episode.options.max_time:
        truncate(episode)
        return False
    record.pending_reward -= (record.rate + episode.costs.busy_cost) * (now - record.time)
    record.time = now
    # At one instant jobs arrive before executors do something.
    if record.num_arrived < record.num_jobs and episode.jobs[record.num_arrived].arrival == now:
        arrive(episode)
    else:
        record.num_events -= 1
        executor = episode.events[record.num_events] & (MOST_EXECUTORS - 1)
        one = episode.executors[executor]
        if one.busy:
            end_task(episode, executor)
        else:
            one.job = one.target // episode.options.span
            episode.jobs[one.job].present += 1
            want(episode, one.target, 1)
            enter_pool(episode, executor, job_pool(episode, one.job))
            send(episode, executor, one.target)
    if record.num_here == 0 and record.num_arrived == record.num_jobs:
        record.active = False
        return False
    # All that happens at time 0 comes before the first decision.
    record.deciding = num_free(episode) > 0 and not (now == 0 and next_time(episode) == 0)
    return True


@njit_inlined
def assign_stranded(episode: Episode) -> None:
    """Begins a round for executors that wait while nothing will happen any more.

    One of them has to go somewhere. Simulators without this would never come to an end.
    """
    record = episode.record
    for executor in range(episode.options.executors):
        record.source = episode.executors[executor].pool
        if first_candidate(episode) >= 0:
            break
    record.deciding, record.decided, record.forced = True, False, True


@njit_inlined
def truncate(episode: Episode) -> None:
    """Ends an episode at the world's end of time."""
    record = episode.record
    until = episode.options.max_time
    record.pending_reward -= (record.rate + episode.costs.busy_cost) * (until - record.time)
    record.time = until
    for executor in range(episode.options.executors):
        if episode.executors[executor].busy:
            pay_use(episode, episode.executors[executor].since, until)
    for i in range(record.num_here):
        pay_late(episode, episode.here[i])
    record.active, record.truncated = False, True
