"""The code of a state: the few bytes that every observation is computed from."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.deeprm.cluster import Cluster


class StateShape(NamedTuple):
    """Constants of a cluster and of its states, as compiled code takes them."""

    capacity: NDArray[np.int64]  # (num_resources,)
    horizon: int
    num_slots: int
    num_classes: int
    backlog_view: int
    slots_at: int  # place of the slots in a state
    backlog_at: int
    since_at: int
    waited_at: int
    window_at: int
    classes_at: int


@dataclass(frozen=True)
class StateLayout:
    """Where the parts of a state lie.

    The code of one state is ``uint8 (size,)``: the units in use for each coming time step and
    resource (row-major), the jobs in the slots as (duration, demand of each resource) with
    duration 0 for an empty slot, the number of jobs in the backlog, the time steps since the last
    arrival, for each slot the time steps since its job arrived, 0 if it is empty, and the length of
    the arrival window; all but the units and the jobs saturate at 255. A wait is at most 255 less
    the number of jobs in the slots that arrived before, so that the order of arrival can be seen
    however long jobs wait. Only if the cluster has more than one class of jobs, the class of the
    job in each slot follows, 0 if it is empty. The default cluster has a state of 83 bytes, where
    the image that DeepRM looks at has 4,460.
    """

    cluster: Cluster

    @cached_property
    def occupied(self) -> slice:
        """Units in use, ``horizon * num_resources`` bytes."""
        return slice(0, self.cluster.horizon * self.cluster.num_resources)

    @cached_property
    def slots(self) -> slice:
        """Jobs in the slots, ``num_slots * (1 + num_resources)`` bytes."""
        first = self.occupied.stop
        return slice(first, first + self.cluster.num_slots * (1 + self.cluster.num_resources))

    @property
    def backlog(self) -> int:
        """Place of the number of jobs in the backlog."""
        return int(self.slots.stop)

    @property
    def since(self) -> int:
        """Place of the number of time steps since the last arrival."""
        return self.backlog + 1

    @cached_property
    def waited(self) -> slice:
        """Time steps since the arrival of the job in each slot, ``num_slots`` bytes."""
        return slice(self.since + 1, self.since + 1 + self.cluster.num_slots)

    @property
    def window(self) -> int:
        """Place of the length of the arrival window: of the task, not of what is left of it."""
        return int(self.waited.stop)

    @cached_property
    def classes(self) -> slice:
        """Class of the job in each slot, ``num_slots`` bytes; none if there is only one class."""
        first = self.window + 1
        return slice(first, first + (self.cluster.num_slots if self.cluster.num_classes > 1 else 0))

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return int(self.classes.stop)

    @cached_property
    def shape(self) -> StateShape:
        """What compiled code has to know."""
        cluster = self.cluster
        return StateShape(
            capacity=np.asarray(cluster.capacity, np.int64),
            horizon=cluster.horizon,
            num_slots=cluster.num_slots,
            num_classes=cluster.num_classes,
            backlog_view=cluster.backlog_view,
            slots_at=int(self.slots.start),
            backlog_at=self.backlog,
            since_at=self.since,
            waited_at=int(self.waited.start),
            window_at=self.window,
            classes_at=int(self.classes.start),
        )

    def occupied_of(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The units in use, a view of shape ``(n, horizon, num_resources)``."""
        cluster = self.cluster
        return states[:, self.occupied].reshape(-1, cluster.horizon, cluster.num_resources)

    def slots_of(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Duration and demands of the slots, a view ``(n, num_slots, 1 + num_resources)``."""
        cluster = self.cluster
        return states[:, self.slots].reshape(-1, cluster.num_slots, 1 + cluster.num_resources)
