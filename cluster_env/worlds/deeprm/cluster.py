"""The cluster as DeepRM sees it: one pool of units for each resource."""

from dataclasses import dataclass

import numpy as np

from cluster_env.core.checks import require_option_types
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet, require_classes, require_num_classes

_LARGEST = 255


@dataclass(frozen=True)
class Cluster:
    """Resources and what a scheduler sees of the queue (DeepRM, sections 3.1 and 3.2).

    Attributes:
        capacity: units of each resource, 1 to 255 each.
        horizon: time steps for which the scheduler looks and books ahead, 1 to 255 (the paper: 20).
        num_slots: number of waiting jobs that the policy sees (the paper: M = 10).
        backlog_view: number of jobs beyond the slots that an observation can show (the paper: 60).
            More may wait, but observations stay the same.
        num_classes: number of classes of jobs (queues, tenants) that the policy can distinguish, 1
            to 16.
    """

    capacity: tuple[int, ...] = (10, 10)
    horizon: int = 20
    num_slots: int = 10
    backlog_view: int = 60
    num_classes: int = 1

    def __post_init__(self) -> None:
        require_option_types(self)
        units = self.capacity if isinstance(self.capacity, tuple | list) else ()
        whole = all(isinstance(number, int | np.integer) for number in units)
        if not units or not whole or not all(1 <= number <= _LARGEST for number in units):
            raise InputError(
                f"a cluster needs 1 to {_LARGEST} units of each resource, in whole numbers, but "
                f"{self.capacity} was given"
            )
        for name, value in (("horizon", self.horizon), ("num_slots", self.num_slots)):
            if not 1 <= value <= _LARGEST:
                raise InputError(f"{name} must lie in 1..{_LARGEST}, but {value} was given")
        if not 0 <= self.backlog_view <= _LARGEST:
            raise InputError(
                f"backlog_view must lie in 0..{_LARGEST}, but {self.backlog_view} was given"
            )
        require_num_classes(self.num_classes)

    @property
    def num_resources(self) -> int:
        """Number of resources."""
        return len(self.capacity)

    @property
    def num_actions(self) -> int:
        """One action for each slot, and void (the last one), which lets time pass."""
        return self.num_slots + 1

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job of a jobset can run on the empty cluster.

        Raises:
            InputError: if the number of resources differs, or a job is too large, too long or of
                a class that the cluster does not have.
        """
        if jobset.num_resources != self.num_resources:
            raise InputError(
                f"the jobs ask for {jobset.num_resources} resources, but the cluster has "
                f"{self.num_resources}"
            )
        if jobset.num_jobs == 0:
            return
        if np.any(jobset.demand > np.asarray(self.capacity)):
            job = int(np.argmax((jobset.demand > np.asarray(self.capacity)).any(axis=1)))
            raise InputError(
                f"job {job} asks for {jobset.demand[job].tolist()} units, but the cluster has only "
                f"{list(self.capacity)}"
            )
        if jobset.duration.max() > self.horizon:
            raise InputError(
                f"a job lasts {jobset.duration.max()} steps, but the cluster's horizon is only "
                f"{self.horizon}; give the cluster a larger horizon"
            )
        require_classes(jobset, self.num_classes)
