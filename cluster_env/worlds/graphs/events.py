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
from cluster_env.worlds.graphs.state import NOWHERE, Episode
from cluster_env.worlds.graphs.tables import FIRST, FRESH, REST, draw, measured_duration

NEVER = 2**62
RECENT = 20
"""Arrivals over which size and burstiness are observed."""


# Pools and promises.


@njit_inlined
def common_pool(episode: Episode) -> int:
    """The pool of executors that belong to no job."""
    return episode.record.num_jobs * (episode.options.width + 1)


@njit_inlined
def job_pool(episode: Episode, job: int) -> int:
    """The pool of executors that wait at a job."""
    return episode.record.num_jobs * episode.options.width + job


@njit_inlined
def job_of_pool(episode: Episode, pool: int) -> int:
    """The job that a pool belongs to, `NOWHERE` for the common one."""
    of_stages = episode.record.num_jobs * episode.options.width
    if pool < of_stages:
        return pool // episode.options.width
    return pool - of_stages if pool < common_pool(episode) else NOWHERE


@njit_inlined
def num_free(episode: Episode) -> int:
    """Executors that are to be assigned."""
    source = episode.record.source
    return 0 if source < 0 else episode.pools[source].standing - episode.pools[source].promised


@njit_inlined
def enter_pool(episode: Episode, executor: int, pool: int) -> None:
    """Lets an executor change its pool."""
    record = episode.executors[executor]
    if record.pool >= 0:
        episode.pools[record.pool].standing -= 1
    if pool >= 0:
        episode.pools[pool].standing += 1
    record.pool = pool


@njit_inlined
def note_wanting(episode: Episode, stage: int) -> None:
    """Keeps the bit of a stage that has tasks which nobody is to run yet."""
    width = episode.options.width
    job, bit = stage // width, np.int64(1) << (stage % width)
    tasks, progress = episode.stage_progress[stage], episode.progress[job]
    if tasks.unstarted - tasks.coming - tasks.promised > 0:
        progress.wanting |= bit
    else:
        progress.wanting &= ~bit


@njit_inlined
def promise(episode: Episode, target: int, count: int) -> None:
    """Promises executors of the source to a stage, or that they go to the common pool."""
    record = episode.record
    source = record.source
    entry = 0
    while entry < record.num_promises and (
        episode.promises[entry].source != source or episode.promises[entry].target != target
    ):
        entry += 1
    if entry == record.num_promises:
        record.num_promises += 1
        episode.promises[entry].source, episode.promises[entry].target = source, target
        episode.promises[entry].count = 0
    episode.promises[entry].count += count
    episode.pools[source].promised += count
    if target != common_pool(episode):
        episode.stage_progress[target].promised += count
        note_wanting(episode, target)
        job = target // episode.options.width
        if job != job_of_pool(episode, source):
            episode.progress[job].held += count


@njit_inlined
def keep_promise(episode: Episode, pool: int) -> int:
    """Takes one executor off the oldest promise of a pool; returns where it goes."""
    entry = 0
    while episode.promises[entry].source != pool:
        entry += 1
    target = episode.promises[entry].target
    episode.promises[entry].count -= 1
    if episode.promises[entry].count == 0:
        remove_promise(episode, entry)
    episode.pools[pool].promised -= 1
    if target != common_pool(episode):
        episode.stage_progress[target].promised -= 1
        note_wanting(episode, target)
        job = target // episode.options.width
        if job != job_of_pool(episode, pool):
            episode.progress[job].held -= 1
    return target


@njit_inlined
def remove_promise(episode: Episode, entry: int) -> None:
    """Closes the gap of a promise."""
    record, promises = episode.record, episode.promises
    record.num_promises -= 1
    for i in range(entry, record.num_promises):
        promises[i].source, promises[i].target = promises[i + 1].source, promises[i + 1].target
        promises[i].count = promises[i + 1].count


@njit_inlined
def rest(episode: Episode, executor: int) -> None:
    """Lets an idle executor wait at its job, or in the common pool if that has no tasks left."""
    record = episode.executors[executor]
    job = record.job
    if record.pool == common_pool(episode):
        return
    if episode.progress[job].unstarted != 0:
        enter_pool(episode, executor, job_pool(episode, job))
        return
    enter_pool(episode, executor, common_pool(episode))
    leave_job(episode, executor)


@njit_inlined
def leave_job(episode: Episode, executor: int) -> None:
    """Lets an executor belong to no job."""
    record = episode.executors[executor]
    if record.job >= 0:
        episode.progress[record.job].held -= 1
        episode.progress[record.job].present -= 1
    record.job, record.stage = NOWHERE, NOWHERE


# Stages that can get executors.


@njit_inlined
def is_open(episode: Episode, job: int) -> bool:
    """Whether a job may get executors of the source: it does not have all already."""
    return episode.progress[job].held < episode.options.executors or job == job_of_pool(
        episode, episode.record.source
    )


@njit_inlined
def can_take(episode: Episode, job: int, stage: int) -> bool:
    """Whether a stage of a job can get executors.

    It wants some, was not picked in this round, and no parent wants any.
    """
    progress = episode.progress[job]
    if ((progress.wanting & ~progress.chosen) >> stage) & 1 == 0:
        return False
    return (episode.stages[job * episode.options.width + stage].parents & progress.wanting) == 0


@njit_inlined
def first_stage(episode: Episode, job: int) -> int:
    """The first stage of a job that can get executors, `NOWHERE` if there is none."""
    progress = episode.progress[job]
    if progress.wanting & ~progress.chosen == 0:
        return NOWHERE
    for stage in range(episode.jobs[job].num_stages):
        if can_take(episode, job, stage):
            return stage
    return NOWHERE


@njit_inlined
def substitute(episode: Episode, executor: int) -> int:
    """A stage for an executor that finds no task left at its own: at its job, or else anywhere."""
    own = episode.executors[executor].job
    # Where the first job of all has all executors, none of them helps another of its stages: the
    # code of spark-sched-sim takes its number, 0, for no job.
    if own > 0 or (own == 0 and is_open(episode, 0)):
        stage = first_stage(episode, own)
        if stage >= 0:
            return own * episode.options.width + stage
    for i in range(episode.record.num_here):
        job = episode.here[i]
        if job != own and episode.progress[job].held < episode.options.executors:
            stage = first_stage(episode, job)
            if stage >= 0:
                return job * episode.options.width + stage
    return NOWHERE


# Events, each of which belongs to an executor, in a binary heap.


@njit_inlined
def comes_before(episode: Episode, one: int, other: int) -> bool:
    """Whether the event of an executor comes before that of another."""
    a, b = episode.executors[one], episode.executors[other]
    return a.until < b.until or (a.until == b.until and a.order < b.order)


@njit_inlined
def add_event(episode: Episode, executor: int, until: int) -> None:
    """Lets something end for an executor that begins now."""
    record, events = episode.record, episode.events
    one = episode.executors[executor]
    one.since, one.until, one.order = record.time, until, record.next_order
    record.next_order += 1
    place = record.num_events
    record.num_events += 1
    while place > 0 and comes_before(episode, executor, events[(place - 1) >> 1]):
        events[place] = events[(place - 1) >> 1]
        place = (place - 1) >> 1
    events[place] = executor


@njit_inlined
def take_event(episode: Episode) -> int:
    """Takes the first event; returns its executor."""
    record, events = episode.record, episode.events
    first = events[0]
    record.num_events -= 1
    last, place = events[record.num_events], 0
    while True:
        child = 2 * place + 1
        if child >= record.num_events:
            break
        if child + 1 < record.num_events and comes_before(
            episode, events[child + 1], events[child]
        ):
            child += 1
        if comes_before(episode, last, events[child]):
            break
        events[place] = events[child]
        place = child
    events[place] = last
    return first


@njit_inlined
def next_time(episode: Episode) -> int:
    """When something happens next, `NEVER` if nothing will."""
    record, now = episode.record, NEVER
    if record.num_events > 0:
        now = episode.executors[episode.events[0]].until
    if record.num_arrived < record.num_jobs:
        now = min(now, episode.jobs[record.num_arrived].arrival)
    return now


# What executors do.


@njit_inlined
def send(episode: Episode, executor: int, target: int) -> None:
    """Sends an executor to a stage: it begins a task, moves, or waits at its job for parents."""
    if episode.stage_progress[target].unstarted == 0:
        target = substitute(episode, executor)
        if target < 0:
            rest(episode, executor)
            return
    record, job = episode.executors[executor], target // episode.options.width
    if record.job != job:
        enter_pool(episode, executor, NOWHERE)
        leave_job(episode, executor)
        episode.progress[job].held += 1
        episode.stage_progress[target].coming += 1
        note_wanting(episode, target)
        record.target = target
        add_event(episode, executor, episode.record.time + episode.options.delay)
    elif episode.stages[target].parents & episode.progress[job].unfinished != 0:
        record.stage = NOWHERE
        enter_pool(episode, executor, job_pool(episode, job))
    else:
        begin_task(episode, executor, target)


@njit_inlined
def begin_task(episode: Episode, executor: int, target: int) -> None:
    """Begins the next task of a stage on an executor of its job."""
    width = episode.options.width
    job, stage = target // width, target % width
    record, tasks = episode.executors[executor], episode.stage_progress[target]
    progress, fixed = episode.progress[job], episode.stages[target]
    enter_pool(episode, executor, target)
    lasting = duration_of(episode, executor, target)
    task = episode.first_task[job] + fixed.first_task + fixed.tasks - tasks.unstarted
    tasks.unstarted -= 1
    if tasks.unstarted == 0:
        progress.unstarted &= ~(np.int64(1) << stage)
    note_wanting(episode, target)
    progress.work_left -= fixed.time
    if progress.start < 0:
        progress.start = episode.record.time
    record.stage, record.target, record.busy = stage, target, True
    episode.record.busy += 1
    add_event(episode, executor, episode.record.time + lasting)
    episode.tasks[task, 0], episode.tasks[task, 1] = episode.record.time, record.until
    episode.tasks[task, 2] = executor


@njit_inlined
def duration_of(episode: Episode, executor: int, target: int) -> int:
    """The duration of the next task of a stage on an executor."""
    width, options = episode.options.width, episode.options
    job, stage = target // width, target % width
    fixed, left = episode.jobs[job], episode.stage_progress[target].unstarted - 1
    last = episode.executors[executor].stage
    value_draw = draw(fixed.seed, fixed.number, stage, 2 * left + 1)
    if fixed.row < 0:
        mean = episode.stages[target].time
        lasting = max(int(mean * (1.0 + options.spread * (2.0 * value_draw - 1.0)) + 0.5), 1)
        return lasting + options.warmup if last < 0 else lasting
    wave = FRESH if last < 0 else REST if last == stage else FIRST
    return measured_duration(
        episode.durations,
        fixed.row + stage,
        episode.progress[job].present,
        wave,
        options.warmup,
        draw(fixed.seed, fixed.number, stage, 2 * left),
        value_draw,
    )


@njit_inlined
def end_task(episode: Episode, executor: int) -> None:
    """Lets the task of an executor end, and what follows from it."""
    record, one = episode.record, episode.executors[executor]
    target, width = one.target, episode.options.width
    job, bit = target // width, np.int64(1) << (target % width)
    tasks, progress = episode.stage_progress[target], episode.progress[job]
    pay_use(episode, one.since, record.time)
    one.busy = False
    record.busy -= 1
    tasks.ended += 1
    if tasks.unstarted > 0:
        send(episode, executor, target)
        return
    # The stage may have ended, its children may begin, and the job may be done.
    child_begins = False
    if tasks.ended == episode.stages[target].tasks:
        progress.unfinished &= ~bit
        for child in range(episode.jobs[job].num_stages):
            parents = episode.stages[job * width + child].parents
            if parents & bit != 0 and parents & progress.unfinished == 0:
                child_begins = True
        if progress.unfinished == 0:
            finish_job(episode, job)
    # The executor goes where it is promised, or waits for what its stage's executors are to do.
    if episode.pools[target].promised > 0:
        goal = keep_promise(episode, target)
        if goal == common_pool(episode):
            rest(episode, executor)
        else:
            send(episode, executor, goal)
        if child_begins:
            record.source = job_pool(episode, job)
        return
    one.stage = NOWHERE
    record.source = target
    if child_begins:
        record.source = job_pool(episode, job)
        enter_pool(episode, executor, record.source)


@njit_inlined
def finish_job(episode: Episode, job: int) -> None:
    """Notes the finish of a job, and frees the executors that wait at it."""
    record, progress = episode.record, episode.progress[job]
    for executor in range(episode.options.executors):
        if episode.executors[executor].pool == job_pool(episode, job):
            rest(episode, executor)
    progress.finish = record.time
    kept = 0
    for i in range(record.num_here):
        if episode.here[i] != job:
            episode.here[kept] = episode.here[i]
            kept += 1
    record.num_here = kept
    column = record.first_job + job
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
    record.rate += episode.costs.rate[record.first_job + job]
    observe(episode)
    if episode.pools[common_pool(episode)].standing > 0:
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
    column = record.first_job + job
    completion = record.time - episode.jobs[job].arrival
    for k in range(costs.late_rate.shape[0]):
        late = max(completion - costs.late_after[k, column], 0)
        record.pending_reward -= costs.late_rate[k, column] * late


# The course of an episode.


@njit_inlined
def begin_episode(episode: Episode) -> None:
    """Puts an episode back to where nothing has happened."""
    record, width = episode.record, episode.options.width
    for job in range(record.num_jobs):
        progress, num_stages = episode.progress[job], episode.jobs[job].num_stages
        every = (np.int64(1) << num_stages) - 1
        progress.wanting, progress.unfinished, progress.unstarted = every, every, every
        progress.chosen, progress.held, progress.present = 0, 0, 0
        progress.start, progress.finish = -1, -1
        progress.work_left = episode.jobs[job].work
        for stage in range(job * width, job * width + num_stages):
            tasks = episode.stage_progress[stage]
            tasks.unstarted, tasks.ended = episode.stages[stage].tasks, 0
            tasks.coming, tasks.promised = 0, 0
            first = episode.first_task[job] + episode.stages[stage].first_task
            episode.tasks[first : first + episode.stages[stage].tasks, 1] = -1
    for pool in range(common_pool(episode) + 1):
        episode.pools[pool].standing, episode.pools[pool].promised = 0, 0
    for executor in range(episode.options.executors):
        one = episode.executors[executor]
        one.pool, one.job, one.stage, one.target = NOWHERE, NOWHERE, NOWHERE, NOWHERE
        one.busy, one.since, one.until, one.order = False, 0, 0, 0
        enter_pool(episode, executor, common_pool(episode))
    record.time, record.num_arrived, record.num_here, record.num_events = 0, 0, 0, 0
    record.num_promises, record.next_order, record.busy = 0, 0, 0
    record.source, record.picked, record.skipped = NOWHERE, NOWHERE, 0
    record.rate, record.pending_reward = 0.0, 0.0
    record.recent_log_work, record.recent_burst = 0.0, 0.0
    record.deciding, record.decided, record.forced = False, False, False
    record.active, record.truncated = record.num_jobs > 0, False


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
        executor = take_event(episode)
        one = episode.executors[executor]
        if one.busy:
            end_task(episode, executor)
        else:
            target = one.target
            job = target // episode.options.width
            one.job = job
            episode.progress[job].present += 1
            episode.stage_progress[target].coming -= 1
            note_wanting(episode, target)
            enter_pool(episode, executor, job_pool(episode, job))
            send(episode, executor, target)
    if record.num_here == 0 and record.num_arrived == record.num_jobs:
        record.active = False
        return False
    # All that happens at time 0 comes before the first decision.
    record.deciding = num_free(episode) > 0 and not (now == 0 and next_time(episode) == 0)
    record.decided = False
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
def first_candidate(episode: Episode) -> int:
    """The first stage that can get executors of the source, `NOWHERE` if there is none.

    Those of the job that the executors are at come first, and then those of other jobs by arrival.
    """
    own = job_of_pool(episode, episode.record.source)
    if own >= 0:
        stage = first_stage(episode, own)
        if stage >= 0:
            return own * episode.options.width + stage
    for i in range(episode.record.num_here):
        job = episode.here[i]
        if job != own and is_open(episode, job):
            stage = first_stage(episode, job)
            if stage >= 0:
                return job * episode.options.width + stage
    return NOWHERE


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
