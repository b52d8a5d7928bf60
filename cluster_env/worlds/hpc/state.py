"""The state of an episode as integers: what is asked of the waiting jobs, and sums of the rest."""

from dataclasses import dataclass

from cluster_env.core.errors import InputError

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

JOB = ("estimate", "waited")
"""What a state has of each job that a policy sees, before its demands; 0 in empty places."""

RECENT = 50
"""Arrivals over which recent means are taken, with weights that fade."""


@dataclass(frozen=True)
class StateLayout:
    """Where the parts of a state lie.

    Attributes:
        num_resources: what jobs ask for.
        queue: waiting jobs that a state shows, in order of arrival.
    """

    num_resources: int
    queue: int

    def __post_init__(self) -> None:
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
    def size(self) -> int:
        """Numbers of a state."""
        return self.jobs_at + self.queue * self.job_size
