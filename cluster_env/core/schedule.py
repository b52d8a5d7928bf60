"""What a simulator hands out: when each job arrived, started and finished."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import classes_or_zeros, no_classes


@dataclass(frozen=True, eq=False)
class Schedule:
    """The jobs of several episodes, one entry per job; every metric is computed from this alone.

    Attributes:
        episode: int32 ``(n,)``, index of the episode that a job belongs to.
        job: int32 ``(n,)``, index of the job in its jobset.
        arrival: int32 ``(n,)``.
        start: int32 ``(n,)``, -1 if the job never started.
        finish: int32 ``(n,)``, -1 if the job had not finished when its episode ended.
        duration: int32 ``(n,)``.
        demand: int32 ``(n, num_resources)``.
        end: int32 ``(num_episodes,)``, clock at which each episode ended.
        window: int32 ``(num_episodes,)``, steps in which jobs may arrive.
        jobset: int32 ``(num_episodes,)``, index of the jobset that each episode ran.
        capacity: int32 ``(num_resources,)``.
        job_class: uint8 ``(n,)``, the class of each job; 0 if not given.
    """

    episode: NDArray[np.int32]
    job: NDArray[np.int32]
    arrival: NDArray[np.int32]
    start: NDArray[np.int32]
    finish: NDArray[np.int32]
    duration: NDArray[np.int32]
    demand: NDArray[np.int32]
    end: NDArray[np.int32]
    window: NDArray[np.int32]
    jobset: NDArray[np.int32]
    capacity: NDArray[np.int32]
    job_class: NDArray[np.uint8] = field(default_factory=no_classes)

    def __post_init__(self) -> None:
        given = classes_or_zeros(self.job_class, int(self.job.size))
        object.__setattr__(self, "job_class", given)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return int(self.end.size)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which jobs finished, bool ``(n,)``."""
        return self.finish >= 0

    @property
    def completion(self) -> NDArray[np.int32]:
        """Time steps from arrival to finish, int32 ``(n,)``.

        An unfinished job counts the steps it spent in the system until its episode ended, which
        is less than its true completion time: whoever averages over it must say so.
        """
        until = np.where(self.finished, self.finish, self.end[self.episode])
        return (until - self.arrival).astype(np.int32)

    @property
    def slowdown(self) -> NDArray[np.float64]:
        """Completion time over duration (DeepRM, section 3.1), float64 ``(n,)``.

        Unfinished jobs count as in `completion`.
        """
        return self.completion / self.duration
