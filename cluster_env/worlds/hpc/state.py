"""The state of an episode as integers: what is asked of the waiting jobs, and sums of the rest."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_either, njit_inlined
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import LARGEST
from cluster_env.worlds.hpc.events import AT_ARRIVAL, Episode, Machine, came, fits, log_thousandths
from cluster_env.worlds.hpc.reservations import reserve
from cluster_env.worlds.hpc.site import deciding as at_site
from cluster_env.worlds.hpc.site_arrays import SITE_JOB

State = NDArray[np.int32]  # (state_size,)
States = NDArray[np.int32]  # (n, state_size), or a part of it

HEADER = (
    "waiting",  # jobs
    "running",  # jobs
    "next_end",  # seconds until the next job is expected to end
    "reservation",  # seconds until the oldest waiting job is expected to fit
    "spare",  # processors that are free beside it then
    "queued_work",  # of all waiting jobs, seconds of the whole machine
    "running_work",  # that is left of all running jobs, likewise
    "queue_log",  # mean of ln(estimate) of waiting jobs, in thousandths, as all that follows
    "running_log",  # the same of running jobs
    "recent_log",  # the same of jobs that arrived lately
    "recent_log_deviation",
    "recent_log_area",  # of estimate x processors
    "recent_log_area_deviation",
    "recent_log_gap",  # of seconds between arrivals, and one more
    "recent_load",  # ln of estimate x processors a second over the machine's processors
)
"""What a state begins with, each an int32; then free units of each resource, then the jobs."""

WAITING, RUNNING, NEXT_END, RESERVATION, SPARE, QUEUED_WORK, RUNNING_WORK = range(7)
QUEUE_LOG, RUNNING_LOG, RECENT_LOG, RECENT_LOG_DEVIATION, RECENT_LOG_AREA = range(7, 12)
RECENT_LOG_AREA_DEVIATION, RECENT_LOG_GAP, RECENT_LOAD, FREE = range(12, len(HEADER) + 1)

JOB = ("estimate", "waited")
"""What a state has of each job that a policy sees, before its demands; 0 in empty places."""

ESTIMATE, WAITED, DEMAND = range(len(JOB) + 1)

CLOCK = ("time", "remaining_work")
"""What stands behind the jobs of a state with a horizon: seconds, and the work that is expected of
running jobs, see `log_thousandths`. Then come rows, each with its offset in seconds and the units
of each resource that are expected to be free then, and then for each job that is seen what was true
when it was submitted, see `AT_ARRIVAL`."""

TIME, REMAINING_WORK = range(len(CLOCK))


@dataclass(frozen=True)
class StateLayout:
    """Where the parts of a state lie.

    Attributes:
        num_resources: what jobs ask for.
        queue: waiting jobs that a state shows, in order of arrival.
        horizon: rows of what is expected, see `CLOCK`; 0 for a state that ends with its jobs.
        site: whether it is that of a site, see `SITE_JOB`.
        shows_classes: whether the last number of each job is its class.
    """

    num_resources: int
    queue: int
    horizon: int = 0
    site: bool = False
    shows_classes: bool = False

    def __post_init__(self) -> None:
        if self.horizon != 0 and not 2 <= self.horizon <= 4096:
            raise InputError(
                f"a horizon has 2 to 4096 rows, or 0 for none, but {self.horizon} was given"
            )
        if not 1 <= self.queue <= 4096:
            raise InputError(
                f"a policy can see a queue of 1 to 4096 jobs, but {self.queue} was given"
            )

    @property
    def jobs_at(self) -> int:
        """Where the first job begins."""
        return len(HEADER) + self.num_resources

    @property
    def job_size(self) -> int:
        """Numbers of each job."""
        of_site = len(SITE_JOB) if self.site else 0
        return len(JOB) + self.num_resources + of_site + self.shows_classes

    @property
    def clock_at(self) -> int:
        """Where what is expected begins: the end of the jobs."""
        return self.jobs_at + self.queue * self.job_size

    @property
    def rows_at(self) -> int:
        """Where the first row of the horizon begins."""
        return self.clock_at + len(CLOCK)

    @property
    def arrivals_at(self) -> int:
        """Where what was true at the arrival of the first job begins."""
        return self.rows_at + self.horizon * (1 + self.num_resources)

    @property
    def size(self) -> int:
        """Numbers of a state."""
        if not self.horizon:
            return self.clock_at
        return self.arrivals_at + self.queue * len(AT_ARRIVAL)

    def free(self, states: States) -> States:
        """Free units of each resource, ``(n, num_resources)``: a view."""
        return states[:, len(HEADER) : self.jobs_at]

    def jobs(self, states: States) -> States:
        """The jobs that are seen, ``(n, queue, job_size)``."""
        return states[:, self.jobs_at : self.clock_at].reshape(-1, self.queue, self.job_size)

    def rows(self, states: States) -> States:
        """The rows of the horizon, ``(n, horizon, 1 + num_resources)``."""
        shown = states[:, self.rows_at : self.arrivals_at]
        return shown.reshape(-1, self.horizon, 1 + self.num_resources)

    def arrivals(self, states: States) -> States:
        """What was true when the jobs arrived, ``(n, queue, 4)``, see `AT_ARRIVAL`."""
        return states[:, self.arrivals_at :].reshape(-1, self.queue, len(AT_ARRIVAL))

    @cached_property
    def space(self) -> spaces.Box:
        """What states are."""
        return spaces.Box(-LARGEST, LARGEST, (self.size,), np.int32)


@njit_inlined
def _show_places_in_pool(machine: Machine, episode: Episode, seen: int, out: State) -> None:
    """Writes when the oldest job can start, and at a site more of each job."""
    if seen > 0:
        now, oldest = episode.status[0].time, episode.queue[episode.status[0].head]
        if fits(episode.demand, oldest, episode.free):
            out[SPARE] = episode.free[0] - episode.demand[oldest, 0]
        else:
            out[RESERVATION] = _whole(reserve(episode, oldest, now) - now)
            out[SPARE] = episode.spare[0]


@njit_inlined
def _show_places_at_site(machine: Machine, episode: Episode, seen: int, out: State) -> None:
    options = machine.options[0]
    places = out[options.jobs_at + DEMAND + episode.free.size :]
    reservation, spare = at_site.show_jobs(episode, places, options.job_size, seen)
    out[RESERVATION], out[SPARE] = reservation, spare


@njit_inlined
def _whole(value: float) -> int:
    return int(min(max(round(value), -LARGEST), LARGEST))


_show_places = njit_either(_show_places_in_pool, _show_places_at_site, "site", at=1)


@njit_inlined
def show(machine: Machine, episode: Episode, out: State) -> None:
    """Writes the state of an episode."""
    status, sums, options = episode.status[0], episode.sums[0], machine.options[0]
    now, size = status.time, options.job_size
    head, tail = status.head, status.tail
    waiting, running = tail - head, status.running
    processors = float(episode.capacity[0])
    for k in range(out.size):
        out[k] = 0
    out[WAITING], out[RUNNING] = waiting, running
    # What runs, as expected.
    remaining = sums.run_work - now * sums.run_size
    if running > 0:
        out[NEXT_END] = _whole(max(episode.expected[running - 1] - now, 1))
        out[RUNNING_WORK] = _whole(max(remaining, 0.0) / processors)
        out[RUNNING_LOG] = _whole(1000 * sums.run_log / running)
    # What waits, and when the oldest can start.
    seen = min(waiting, options.queue)
    _show_places(machine, episode, seen, out)
    if waiting > 0:
        out[QUEUED_WORK] = _whole(max(sums.queue_work, 0.0) / processors)
        out[QUEUE_LOG] = _whole(1000 * sums.queue_log / waiting)
    # What has arrived lately.
    out[RECENT_LOG] = _whole(1000 * sums.log)
    out[RECENT_LOG_DEVIATION] = _whole(1000 * _deviation(sums.log, sums.log_square))
    out[RECENT_LOG_AREA] = _whole(1000 * sums.area)
    out[RECENT_LOG_AREA_DEVIATION] = _whole(1000 * _deviation(sums.area, sums.area_square))
    out[RECENT_LOG_GAP] = _whole(1000 * sums.log_gap)
    load = sums.work / processors / max(sums.gap, 1.0)
    out[RECENT_LOAD] = _whole(1000 * math.log(max(load, 1e-6)))
    # Free units, and the jobs that are seen.
    for r in range(episode.free.size):
        out[options.jobs_at - episode.free.size + r] = episode.free[r]
    for slot in range(seen):
        job, shown = episode.queue[head + slot], options.jobs_at + slot * size
        out[shown + ESTIMATE] = episode.jobs[job].order_estimate
        out[shown + WAITED] = now - came(episode, job)
        for r in range(episode.free.size):
            out[shown + DEMAND + r] = episode.demand[job, r]
        if options.shows_classes:
            out[shown + size - 1] = episode.jobs[job].job_class
        if options.horizon > 0:
            for k in range(len(AT_ARRIVAL)):
                before = options.arrivals_at + len(AT_ARRIVAL) * slot
                out[before + k] = episode.at_arrival[job, k]
    if options.horizon > 0:
        out[options.clock_at + TIME] = now
        out[options.clock_at + REMAINING_WORK] = log_thousandths(remaining)
        _show_horizon(machine, episode, out[options.rows_at :])


@njit_inlined
def _show_horizon(machine: Machine, episode: Episode, out: State) -> None:
    """Writes the rows of the horizon, `horizon_step` seconds after each other.

    Where that is 0, each row is the next time at which jobs are expected to end, and where there is
    none, the row before it a second later (figure 4.5). ``out`` begins with the first row.
    """
    step, now, size = machine.options[0].horizon_step, episode.status[0].time, 1 + episode.free.size
    coming = episode.status[0].running - 1
    for row in range(machine.options[0].horizon):
        place = row * size
        offset = np.int64(0)
        for r in range(episode.free.size):
            before = episode.free[r] if row == 0 else out[place + 1 + r - size]
            out[place + 1 + r] = before
        if step > 0:
            offset = np.int64(row * step)
        elif row > 0 and coming >= 0:
            offset = max(episode.expected[coming], now + 1) - now
        elif row > 0:
            offset = np.int64(out[place - size]) + 1
        # What is expected to end by then is free.
        while coming >= 0 and max(episode.expected[coming], now + 1) - now <= offset:
            job = episode.expected_jobs[coming]
            for r in range(episode.free.size):
                out[place + 1 + r] += episode.demand[job, r]
            coming -= 1
        out[place] = min(offset, np.int64(LARGEST))


@njit_inlined
def _deviation(mean: float, square: float) -> float:
    return math.sqrt(max(square - mean**2, 0.0))
