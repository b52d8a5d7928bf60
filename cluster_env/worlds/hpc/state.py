"""The state of an episode as integers: what is asked of the waiting jobs, and sums of the rest."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.errors import InputError

LARGEST = 2**31 - 1

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
RECENT_LOG_AREA_DEVIATION, RECENT_LOG_GAP, RECENT_LOAD = range(12, len(HEADER))

JOB = ("estimate", "waited")
"""What a state has of each job that a policy sees, before its demands; 0 in empty places."""

ESTIMATE, WAITED, DEMAND = range(len(JOB) + 1)

CLOCK = ("time", "remaining_work")
"""What stands behind the jobs of a state with a horizon: seconds, and the work that is expected of
running jobs. Then come rows, each with its offset in seconds and the units of each resource that
are expected to be free then. Work is in seconds of one processor here, as ln(1 + it) in
thousandths, which an int32 holds for a machine of any size."""

AT_ARRIVAL = ("queue_size", "queued_work", "free_processors", "remaining_work")
"""What follows for each job that a policy sees: what was true when it was submitted. Of jobs that
are submitted in the same second, the later ones find the others in the queue."""

RECENT = 50
"""Arrivals over which recent means are taken, with weights that fade."""


@dataclass(frozen=True)
class StateLayout:
    """Where the parts of a state lie.

    Attributes:
        num_resources: what jobs ask for.
        queue: waiting jobs that a state shows, in order of arrival.
        horizon: rows of what is expected, see `CLOCK`; 0 for a state that ends with its jobs.
    """

    num_resources: int
    queue: int
    horizon: int = 0

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
        return len(JOB) + self.num_resources

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

    def free(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """Free units of each resource, ``(n, num_resources)``: a view."""
        return states[:, len(HEADER) : self.jobs_at]

    def jobs(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """The jobs that are seen, ``(n, queue, job_size)``."""
        return states[:, self.jobs_at : self.clock_at].reshape(-1, self.queue, self.job_size)

    def rows(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """The rows of the horizon, ``(n, horizon, 1 + num_resources)``."""
        shown = states[:, self.rows_at : self.arrivals_at]
        return shown.reshape(-1, self.horizon, 1 + self.num_resources)

    def arrivals(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """What was true when the jobs arrived, ``(n, queue, 4)``, see `AT_ARRIVAL`."""
        return states[:, self.arrivals_at :].reshape(-1, self.queue, len(AT_ARRIVAL))

    @cached_property
    def space(self) -> spaces.Box:
        """What states are."""
        return spaces.Box(-LARGEST, LARGEST, (self.size,), np.int32)
