"""Episodes as compiled code keeps them: their records, what runs, and sums over their jobs.

What runs is kept twice, each time as an array with a size beside it: a heap of true ends, and a
list of expected ones. Policies know the second alone: a job is expected to end when its estimate is
over. Where that was corrected, and the job outlives it, twice the time is expected, up to what its
user asked for; beyond that, the next second.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_either, njit_inlined
from cluster_env.worlds.hpc.jobs import NOBODY, Records
from cluster_env.worlds.hpc.run_times import learn, predict

NEVER = 2**62

RECENT = 50
"""Arrivals over which recent means are taken, with weights that fade."""

HALF_LIFE_S = 7 * 24 * 3600
"""Seconds in which what a user has used fades by half, for fair shares."""

AT_ARRIVAL = ("queue_size", "queued_work", "free_processors", "remaining_work")
"""What is kept of the moment at which a job arrives, for states with a horizon. Of jobs that arrive
in the same second, the later ones find the others in the queue. Work is in seconds of one
processor, see `log_thousandths`."""

QUEUE_SIZE, QUEUED_WORK, FREE_PROCESSORS, REMAINING_WORK = range(len(AT_ARRIVAL))

CLOCK = [
    # Which jobset an episode runs, where its jobs begin among those of all, and its clock.
    *((name, np.int64) for name in ("jobset", "place", "time")),
    # The largest number that its jobset gives a user, and one more.
    ("num_users", np.int64),
    # Waiting jobs stand in queue[head:tail]; none asks for fewer processors than `narrowest`.
    *((name, np.int64) for name in ("head", "tail", "narrowest")),
    # The model of its jobs' run times, where that learns (`cluster_env.worlds.hpc.run_times`);
    # else 0.
    ("model", np.int64),
    # Jobs that run, and the next job to arrive.
    *((name, np.int64) for name in ("running", "coming")),
    # The clock of the last arrival or finish, of the decisions before the present ones, and to
    # which what users have used has faded.
    *((name, np.int64) for name in ("event", "decided", "faded")),
    # Whether it goes on, or was cut.
    *((name, np.bool_) for name in ("active", "truncated")),
    # Whether the last pass over the queue holds: one that is made anew would come to the same. And
    # whether it does so at this instant alone.
    *((name, np.bool_) for name in ("holds", "fleeting")),
    # Of it: the place behind the head of the last job that it has blocked, -1 for none; and how
    # many jobs it has started.
    *((name, np.int64) for name in ("last", "begun")),
    # Jobs that have come at this instant, and the place of the last one behind the head.
    *((name, np.int64) for name in ("new_jobs", "new_place")),
    # Reward since the last decision.
    ("reward", np.float64),
]
"""Of an episode anywhere."""

_OF_JOBS = ("queue_log", "queue_work", "run_log", "run_work", "run_size")

SUMS = [
    # Arrivals so far, and the time of the last one.
    *((name, np.int64) for name in ("arrived", "last_arrival")),
    # Sums over waiting jobs: ln(estimate), and estimate x processors; and over running jobs:
    # ln(estimate), expected end x processors, and processors.
    *((name, np.float64) for name in _OF_JOBS),
    # The same as they were when the present instant began.
    *((f"first_{name}", np.float64) for name in _OF_JOBS),
    # Means over the last arrivals, of ln(estimate) and ln(estimate x processors) with squares.
    *((name, np.float64) for name in ("log", "log_square", "area", "area_square")),
    # The same of ln(1 + gap), estimate x processors, and gap: seconds between arrivals.
    *((name, np.float64) for name in ("log_gap", "work", "gap")),
]
"""What states and scorers see of a pool, or of a partition. It is kept where a policy or a scorer
decides, see `Order`."""

STATUS = np.dtype(
    [
        *CLOCK,
        # Jobs that wait behind others that are alike, see `cluster_env.worlds.hpc.queue`; and the
        # first job that was not overdue yet when last looked at.
        *((name, np.int64) for name in ("behind", "oldest")),
        # Of the last pass: the job that EASY has a reservation for, -1 for none, when that is, -1
        # where nobody asked; and overdue jobs that have theirs.
        *((name, np.int64) for name in ("blocked", "shadow", "passed")),
        *SUMS,
    ],
    align=True,
)
"""Of an episode in a pool."""

Times = NDArray[np.int64]
Indices = NDArray[np.int32]


OPTIONS = np.dtype(
    [
        # Of a state: jobs that it shows and what it has of each, rows of its horizon, and seconds
        # from one to the next; whether it shows classes.
        *((name, np.int64) for name in ("queue", "job_size", "horizon", "horizon_step")),
        ("shows_classes", np.bool_),
        # Where its parts begin, see `cluster_env.worlds.hpc.state.StateLayout`.
        *((name, np.int64) for name in ("jobs_at", "clock_at", "rows_at", "arrivals_at")),
        # See `cluster_env.worlds.hpc.world.HPC`.
        *((name, np.int64) for name in ("max_time", "time_step")),
        ("every_step", np.bool_),
        # Whose cost counts, whether for all of the time, and the discount of a second; see
        # `cluster_env.worlds.hpc.episodes.REWARDS`.
        ("scope", np.int64),
        ("whole", np.bool_),
        ("discount", np.float64),
    ],
    align=True,
)
"""Of a world."""


class Machine(NamedTuple):
    """A world as compiled code reads it."""

    capacity: NDArray[np.int64]  # (num_resources,)
    options: Records  # (1,), see `OPTIONS`


class Episode(NamedTuple):
    """One episode under way: views of its jobs, and of the arrays that it is played in."""

    jobs: Records  # (num_jobs,), see `JOB`
    demand: NDArray[np.int32]  # (num_jobs, num_resources)
    start: NDArray[np.int64]  # (num_jobs,), -1 for a job that has not started
    at_arrival: NDArray[np.int32]  # (num_jobs, 4), or of no job where states have no horizon
    queue: NDArray[np.int32]  # waiting jobs in order, from status.head to status.tail - 1
    widths: NDArray[np.int32]  # their processors
    keys: NDArray[np.float64]  # their scores under a rule, lower first
    next_alike: NDArray[np.int32]  # (num_jobs,), see `cluster_env.worlds.hpc.queue`, or of no job
    last_alike: NDArray[np.int32]  # (num_jobs,), or of no job
    ends: NDArray[np.int64]  # heap of true ends
    running: NDArray[np.int32]  # whose they are
    expected: NDArray[np.int64]  # expected ends in falling order
    expected_jobs: NDArray[np.int32]  # whose they are
    capacity: NDArray[np.int64]  # (num_resources,), as the next two
    free: NDArray[np.int64]
    spare: NDArray[np.int64]  # beside the first waiting job at its reservation
    usage: NDArray[np.float64]  # (users,), processor seconds of finished jobs, which fade
    groups: NDArray[np.int32]  # (num_jobs, NUM_GROUPS), or of no job where nothing is learned
    known: NDArray[np.float64]  # (num_jobs, NUM_GROUPS, len(KNOWN)), likewise: a row for a group
    begun: NDArray[np.int32]  # jobs that the last pass has started, or room for none
    status: Records  # (1,), see `STATUS`
    sums: Records  # (1,), see `SUMS`; in a pool the same record
    order: Any  # `cluster_env.worlds.hpc.orders.Order`, of its own jobs
    plan: Any  # `cluster_env.worlds.hpc.plan.Plan`; at a site None, bookings take its place
    site: Any  # None; at a site `cluster_env.worlds.hpc.site_arrays.SiteRows`


@njit_inlined
def push(times: Times, jobs: Indices, size: int, time: int, job: int) -> None:
    """Puts an end into a heap that has room for one more than `size`."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if times[above] <= time:
            break
        times[place], jobs[place] = times[above], jobs[above]
        place = above
    times[place], jobs[place] = time, job


@njit_inlined
def pop(times: Times, jobs: Indices, size: int) -> int:
    """Takes the job with the earliest end out of a heap."""
    first = jobs[0]
    last = size - 1
    time, job = times[last], jobs[last]
    # The last one takes the place of the first, and sinks below all that end earlier.
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[place], jobs[place] = times[below], jobs[below]
        place = below
    times[place], jobs[place] = time, job
    return int(first)


@njit_inlined
def expect(times: Times, jobs: Indices, size: int, time: int, job: int) -> None:
    """Enters an expected end into a list in falling order.

    The next end is the last of the list, so that little has to move when a job ends in time.
    """
    place = size
    while place > 0 and times[place - 1] < time:
        times[place], jobs[place] = times[place - 1], jobs[place - 1]
        place -= 1
    times[place], jobs[place] = time, job


@njit_inlined
def forget(times: Times, jobs: Indices, size: int, job: int) -> int:
    """Takes a job out of the list of expected ends, and returns its own."""
    place = size - 1
    kept_time, kept_job = times[place], jobs[place]
    while kept_job != job:  # what comes after the job moves up as it is passed
        place -= 1
        kept_time, times[place] = times[place], kept_time
        kept_job, jobs[place] = jobs[place], kept_job
    return int(kept_time)


@njit_inlined
def _sums_in_pool(episode: Episode, job: int) -> tuple[Records, ...]:
    """The sums that a job counts in."""
    return (episode.sums[0],)


@njit_inlined
def _sums_at_site(episode: Episode, job: int) -> tuple[Records, ...]:
    return (episode.site.partitions[episode.jobs[job].partition], episode.sums[0])


@njit_inlined
def _all_in_pool(episode: Episode) -> tuple[Records]:
    """All sums of an episode; a tuple, since no array may be returned by itself."""
    return (episode.sums,)


@njit_inlined
def _all_at_site(episode: Episode) -> tuple[Records]:
    return (episode.site.partitions,)


@njit_inlined
def _came_to_pool(episode: Episode, job: int) -> int:
    """When a job entered the queue: waits count from then on."""
    return int(episode.jobs[job].arrival)


@njit_inlined
def _came_to_site(episode: Episode, job: int) -> int:
    return int(episode.site.eligible[job])


_sums_of = njit_either(_sums_in_pool, _sums_at_site, "site")
_all_sums = njit_either(_all_in_pool, _all_at_site, "site")
came = njit_either(_came_to_pool, _came_to_site, "site")


@njit_inlined
def raise_outlived(episode: Episode, now: int) -> None:
    """Moves the expected ends of jobs that have outlived them, as far as their limits allow."""
    times, jobs, start = episode.expected, episode.expected_jobs, episode.start
    place = episode.status[0].running - 1
    while place >= 0 and times[place] <= now:
        job, limit = jobs[place], np.int64(episode.jobs[jobs[place]].limit)
        before, last = times[place], start[job] + limit
        if before >= last:
            place -= 1
            continue
        # Twice the time is expected, and again, until that is not over.
        seconds = before - start[job]
        while start[job] + seconds <= now and start[job] + seconds < last:
            seconds = min(2 * seconds, limit)
        # Ends that come before move to the back, so that the list stays in order.
        hole, end = place, start[job] + seconds
        while hole > 0 and times[hole - 1] < end:
            times[hole], jobs[hole] = times[hole - 1], jobs[hole - 1]
            hole -= 1
        times[hole], jobs[hole] = end, job
        if episode.order.counts:
            for sums in _sums_of(episode, job):
                sums.run_work += (end - before) * episode.demand[job, 0]


@njit_inlined
def fits(demand: Indices, job: int, free: NDArray[np.int64]) -> bool:
    """Whether a job could start beside what runs."""
    room = demand[job, 0] <= free[0]
    for r in range(1, free.size):
        room = room and demand[job, r] <= free[r]
    return bool(room)


@njit_inlined
def is_overdue(episode: Episode, job: int, now: int) -> bool:
    """Whether a job has waited for longer than a bound, see `HPC.max_wait`; 0 is no bound."""
    max_wait = episode.order.rule.max_wait
    return bool(max_wait > 0 and now - came(episode, job) > max_wait)


@njit_inlined
def is_overdue_at(episode: Episode, place: int, now: int) -> bool:
    """Whether an overdue job waits at a place of the queue; overdue jobs are its first ones."""
    waiting = episode.order.rule.max_wait > 0 and place < episode.status[0].tail
    return waiting and is_overdue(episode, np.int64(episode.queue[place]), now)


@njit_inlined
def add_units(units: NDArray[np.int64], demand: Indices, job: int, times: int) -> None:
    """Adds what a job asks for so many times, -1 to take it away."""
    for r in range(units.size):
        units[r] += times * demand[job, r]


@njit_inlined
def begin(episode: Episode) -> None:
    """Puts what episodes have anywhere back to where nothing has happened yet."""
    for job in range(episode.start.size):
        episode.start[job] = -1
    for user in range(episode.usage.size):
        episode.usage[user] = 0.0
    for group in range(episode.known.shape[0]):
        for k in range(episode.known.shape[1]):
            for column in range(episode.known.shape[2]):
                episode.known[group, k, column] = 0.0
    status, parts = episode.status[0], _all_sums(episode)[0]
    status.head, status.tail, status.narrowest = 0, 0, NEVER
    status.time, status.running, status.coming = 0, 0, 0
    status.event, status.decided, status.faded = 0, -1, 0
    status.active, status.truncated, status.reward = True, False, 0.0
    status.holds, status.fleeting, status.last, status.begun = False, False, NOBODY, 0
    status.new_jobs, status.new_place = 0, 0
    for k in range(parts.size):
        sums = parts[k]
        sums.arrived, sums.last_arrival = 0, 0
        sums.queue_log, sums.queue_work = 0.0, 0.0
        sums.run_log, sums.run_work, sums.run_size = 0.0, 0.0, 0.0
        sums.log, sums.log_square, sums.area, sums.area_square = 0.0, 0.0, 0.0, 0.0
        sums.log_gap, sums.work, sums.gap = 0.0, 0.0, 0.0


@njit_inlined
def let_run(episode: Episode, job: int, now: int, seconds: int) -> None:
    """Enters the ends of a job that starts, the true one and that expected in so many seconds."""
    episode.start[job], count = now, episode.status[0].running
    push(episode.ends, episode.running, count, now + episode.jobs[job].duration, job)
    if episode.order.tracks:
        expect(episode.expected, episode.expected_jobs, count, now + seconds, job)
    episode.status[0].running = count + 1


@njit_inlined
def expect_started(episode: Episode, now: int, asked: bool) -> None:
    """Sets when jobs that have just started are expected to end.

    ``asked`` says whether that is when their users said, as long as others are overdue at this
    instant, or when it is believed, from then on.
    """
    running = episode.status[0].running
    for place in range(running):
        job = np.int64(episode.running[place])
        record = episode.jobs[job]
        if episode.start[job] == now and record.limit != record.estimate:
            forget(episode.expected, episode.expected_jobs, running, job)
            end = now + (record.limit if asked else record.estimate)
            expect(episode.expected, episode.expected_jobs, running - 1, end, job)


@njit_inlined
def next_of_jobs(episode: Episode) -> int:
    """When a job arrives or finishes next; `NEVER` if none does."""
    now = np.int64(NEVER)
    if episode.status[0].coming < episode.jobs.size:
        now = np.int64(episode.jobs[episode.status[0].coming].arrival)
    if episode.status[0].running > 0:
        now = min(now, episode.ends[0])
    return int(now)


@njit_inlined
def learn_ended(episode: Episode, before: int) -> None:
    """Learns from the run times of jobs that have just ended; so many ran before.

    They stand behind those that run. They count in the order of their numbers: the order in which a
    heap gives equal ends is nobody's.
    """
    ended = episode.running[episode.status[0].running : before]
    for place in range(ended.size):
        job, hole = ended[place], place
        while hole > 0 and ended[hole - 1] > job:
            ended[hole] = ended[hole - 1]
            hole -= 1
        ended[hole] = job
    for job in ended:
        record = episode.jobs[job]
        learn(episode.known, episode.groups[job], record.duration, record.limit)


@njit_inlined
def predict_entering(episode: Episode, job: int) -> None:
    """Writes what is believed of a job that enters the queue."""
    record, groups = episode.jobs[job], episode.groups[job]
    waits, runs = predict(episode.status[0].model, episode.known, groups, record.limit)
    record.order_estimate, record.log = np.int32(waits), math.log(waits)
    record.estimate = np.int32(runs)


@njit_inlined
def fade(episode: Episode, now: int, half_life: float) -> None:
    """Lets what users have used fade by half in so many seconds."""
    if episode.usage.size > 1:
        faded = 0.5 ** ((now - episode.status[0].faded) / half_life)
        for user in range(episode.usage.size):
            episode.usage[user] *= faded
        episode.status[0].faded = now


@njit_inlined
def count_usage(episode: Episode, job: int, now: int) -> None:
    """Counts a run that is over for the job's user."""
    used = float(now - episode.start[job]) * episode.demand[job, 0]
    episode.usage[episode.jobs[job].user] += used


@njit_inlined
def count_start(episode: Episode, job: int, now: int) -> None:
    """Brings sums up to date when a job starts."""
    record, size = episode.jobs[job], episode.demand[job, 0]
    for sums in _sums_of(episode, job):
        sums.queue_log -= record.log
        sums.queue_work -= float(record.order_estimate) * size
        sums.run_log += record.log
        sums.run_work += float(now + record.estimate) * size
        sums.run_size += size


@njit_inlined
def count_end(episode: Episode, job: int, end: int) -> None:
    """Brings sums up to date when a job ends that was expected to do so then."""
    size = episode.demand[job, 0]
    for sums in _sums_of(episode, job):
        sums.run_log -= episode.jobs[job].log
        sums.run_work -= float(end) * size
        sums.run_size -= size


@njit_inlined
def note_arrival(episode: Episode, job: int, waiting: int, now: int) -> None:
    """Keeps what is true when a job enters the queue, where states show it, see `AT_ARRIVAL`."""
    if episode.at_arrival.shape[0] > 0:
        sums, seen = episode.sums[0], episode.at_arrival[job]
        seen[QUEUE_SIZE] = waiting
        seen[QUEUED_WORK] = log_thousandths(sums.queue_work)
        seen[FREE_PROCESSORS] = episode.free[0]
        seen[REMAINING_WORK] = log_thousandths(sums.run_work - now * sums.run_size)


@njit_inlined
def count_arrival(episode: Episode, job: int, now: int, new: bool) -> None:
    """Brings sums up to date when a job enters the queue, and recent means if it is new there."""
    record, size = episode.jobs[job], episode.demand[job, 0]
    log, work = record.log, float(record.order_estimate) * size
    area = log + math.log(size)
    for sums in _sums_of(episode, job):
        sums.queue_log += log
        sums.queue_work += work
        if new:
            # Means of the first arrivals are plain ones; then old arrivals fade.
            gap = float(now - sums.last_arrival) if sums.arrived > 0 else 0.0
            sums.arrived, sums.last_arrival = sums.arrived + 1, now
            share = 1.0 / min(float(sums.arrived), float(RECENT))
            sums.log += share * (log - sums.log)
            sums.log_square += share * (log * log - sums.log_square)
            sums.area += share * (area - sums.area)
            sums.area_square += share * (area * area - sums.area_square)
            sums.log_gap += share * (math.log(1.0 + gap) - sums.log_gap)
            sums.work += share * (work - sums.work)
            sums.gap += share * (gap - sums.gap)


@njit_inlined
def begin_instant(episode: Episode) -> None:
    """Notes the sums over jobs before anybody decides, to the last bit."""
    parts = _all_sums(episode)[0]
    for k in range(parts.size):
        sums = parts[k]
        sums.first_queue_log, sums.first_queue_work = sums.queue_log, sums.queue_work
        sums.first_run_log, sums.first_run_work = sums.run_log, sums.run_work
        sums.first_run_size = sums.run_size


@njit_inlined
def begin_again(episode: Episode) -> None:
    """Puts sums back to what they were then: to add what a start took away would round anew."""
    parts = _all_sums(episode)[0]
    for k in range(parts.size):
        sums = parts[k]
        sums.queue_log, sums.queue_work = sums.first_queue_log, sums.first_queue_work
        sums.run_log, sums.run_work = sums.first_run_log, sums.first_run_work
        sums.run_size = sums.first_run_size


@njit_inlined
def log_thousandths(work: float) -> int:
    """``ln(1 + work)`` in thousandths, which an int32 holds for a machine of any size."""
    return round(1000 * math.log(1.0 + max(work, 0.0)))
