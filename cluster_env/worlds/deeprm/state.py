"""The code of a state, from which every observation is computed, and when a job fits in it."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.deeprm.cluster import Cluster

SATURATED = 255
"""The largest number that a byte holds: times and counts of a state stop there."""


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
    def space(self) -> spaces.Box:
        """Of one state: ``size`` bytes."""
        return spaces.Box(0, SATURATED, (self.size,), np.uint8)

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


@njit_inlined
def last_start(duration: int, horizon: int, try_last_start: bool) -> int:
    """Latest start in the horizon that the rules allow; negative if there is none."""
    return horizon - duration if try_last_start else horizon - duration - 1


@njit_inlined
def first_start(
    states: NDArray[np.uint8], row: int, place: int, capacity: NDArray[np.int64], last: int
) -> int:
    """First of the steps 0 to `last` from which the job at a place of a state fits to its end.

    -1 if there is no job or no room for it. It takes all states and a row, so that the simulator's
    hot loop has to make no view of one.
    """
    resources = capacity.size
    duration = np.int64(states[row, place])
    if duration == 0:
        return -1
    # One walk over the steps: a step that is too full moves the candidate start behind it, so that
    # no step is looked at twice, whatever the durations are.
    first = 0
    step = 0
    while first <= last:
        fits = True
        for r in range(resources):
            used = np.int64(states[row, step * resources + r])
            if used + states[row, place + 1 + r] > capacity[r]:
                fits = False
        step += 1
        if not fits:
            first = step
        elif step - first == duration:
            return first
    return -1


@njit_inlined
def first_free(
    states: NDArray[np.uint8], row: int, place: int, capacity: NDArray[np.int64], horizon: int
) -> int:
    """First step from which the job at a place of a state fits, whether it can be booked or not.

    Behind the horizon nothing runs, so it is at most that.
    """
    resources = capacity.size
    duration = np.int64(states[row, place])
    # As in `first_start`, but what lies behind the horizon counts as free.
    first = 0
    for step in range(horizon):
        if step - first == duration:
            break
        for r in range(resources):
            used = np.int64(states[row, step * resources + r])
            if used + states[row, place + 1 + r] > capacity[r]:
                first = step + 1
    return first
