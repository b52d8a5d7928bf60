"""Observations by name, for the environments, and the thesis's among them (Cunha, chapter 4).

The image is that of section 4.4 and figures 4.2 and 4.3; `compact` and `events` are the numbers in
a row of tables 4.1 and 4.2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.errors import InputError
from cluster_env.core.observation import Observation, features_observation
from cluster_env.core.registry import Registry
from cluster_env.worlds.hpc.events import AT_ARRIVAL
from cluster_env.worlds.hpc.state import (
    DEMAND,
    ESTIMATE,
    REMAINING_WORK,
    TIME,
    WAITED,
    WAITING,
    StateLayout,
)
from cluster_env.worlds.hpc.world import HPC

LARGEST = 6.0
"""No feature is further from 0: all are shares and logarithms of what a state can hold."""

TIME_HORIZON, EVENT_HORIZON = 20, 60
"""Rows where a world has no horizon: of moments (section 5.1.1), of expected ends (table 5.5)."""

MINUTE = 60
"""Seconds between moments where neither the horizon nor the clock has a step."""

BACKLOG = 60
"""Jobs beyond those that are seen that the image shows (section 5.1.1)."""

_MOST_CELLS = 2**24
_MOST_SECONDS = 2.0**31
_MOST_JOBS = 1e6

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class ImageView:
    """Draws states.

    Rows are moments of the horizon, now first. Columns are, for each resource, a block for the
    machine and one for each job that is seen, as wide as the machine has units; the last block is
    the backlog, row by row. In the machine's block as many cells from the left are 1 as units are
    expected to be in use; a job is a rectangle of requested time x units.

    Attributes:
        capacity: units of each resource of the machine, processors first.
        step: seconds from row to row, at least 1.
    """

    capacity: tuple[int, ...]
    layout: StateLayout
    step: int

    def __post_init__(self) -> None:
        rows, columns = self.shape
        if rows * columns > _MOST_CELLS:
            raise InputError(
                f"an image of this machine has {rows:,} x {columns:,} cells, more than "
                f"{_MOST_CELLS:,}; the observations compact and events are as large for any machine"
            )

    @property
    def backlog_width(self) -> int:
        """Columns of the backlog."""
        return -(-BACKLOG // self.layout.horizon)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        blocks = (1 + self.layout.queue) * sum(self.capacity)
        return self.layout.horizon, blocks + self.backlog_width

    def draw(self, states: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Draws states, int32 ``(n, state_size)``, as uint8 ``(n, rows, columns)`` of 0 and 1."""
        layout = self.layout
        require_states(states, layout.space)
        rows, jobs = layout.rows(states), layout.jobs(states)
        moments = np.arange(layout.horizon)
        lasts = moments[:, None] * self.step < jobs[:, None, :, ESTIMATE]  # (n, horizon, queue)
        column = 0
        for r, units in enumerate(self.capacity):
            # The machine: what is in use stands on the left.
            places = np.arange(units)
            used = units - rows[:, :, 1 + r]
            out[:, :, column : column + units] = places < used[:, :, None]
            column += units
            # Jobs one by one: most of a queue is empty most of the time.
            for slot in range(layout.queue):
                size = jobs[:, slot, DEMAND + r]
                block = out[:, :, column : column + units]
                block[:] = 0
                if size.any():
                    block[:] = lasts[:, :, slot, None] & (places < size[:, None, None])
                column += units
        # The backlog: a cell for each further job.
        backlog = np.arange(layout.horizon * self.backlog_width).reshape(layout.horizon, -1)
        out[:, :, column:] = backlog < (states[:, WAITING] - layout.queue)[:, None, None]


@dataclass(frozen=True)
class Columns:
    """What the numbers of an observation are, and how they are brought to 0 to 1.

    Attributes:
        names: of the numbers, in order.
        logarithmic: of times, work and numbers of jobs, the logarithm of one more is taken (section
            4.7.3).
        most: what a number is divided by then; nothing larger can be told from it.
    """

    names: tuple[str, ...]
    logarithmic: NDArray[np.bool_]  # (size,)
    most: Numbers  # (size,)

    def scaled(self, numbers: Numbers) -> NDArray[np.float32]:
        """Numbers ``(n, size)`` as shares, float32 ``(n, size)`` from 0 to 1."""
        logs = np.log1p(numbers, where=self.logarithmic, out=numbers.copy())
        return np.clip(logs / self.most, 0, 1).astype(np.float32)


@dataclass(frozen=True)
class CompactView:
    """What one compact observation shows of a state.

    With rows of fixed length (table 4.1) these are, in the order of section 4.6.1: for each row
    the units in use and free of each resource; for each job that is seen nine features, of its
    submission but for whether it fits now; and how many jobs wait beyond them. With rows at
    expected ends (table 4.2) they are, in the order of figure 4.5: remaining work, the next time
    with free processors and what is free and in use then, jobs beyond those that are seen, jobs
    that wait; for each row its offset, what is free and in use; and for each job seven features.

    Places without a job are 0. Where a job asks for further resources, these demands follow that
    for processors.

    Attributes:
        capacity: units of each resource of the machine, processors first.
        resources: their names.
        by_events: whether rows are expected ends.
    """

    capacity: tuple[int, ...]
    resources: tuple[str, ...]
    layout: StateLayout
    by_events: bool

    @cached_property
    def columns(self) -> Columns:
        """Names and scales of all numbers."""
        used, free = ([f"{what}_{name}" for name in self.resources] for what in ("used", "free"))
        job = ["submitted", "requested_time", *(f"requested_{name}" for name in self.resources)]
        job += list(AT_ARRIVAL)
        if self.by_events:
            job[-1:] = ["fits"]
            row = ["offset", *free, *used]
            first = ["remaining_work", *(f"next_free.{name}" for name in row), "backlog", "waiting"]
            last = []
        else:
            job += ["backlog", "fits"]
            row, first, last = [*used, *free], [], ["backlog"]
        rows = [f"row{k}.{name}" for k in range(self.layout.horizon) for name in row]
        jobs = [f"job{k}.{name}" for k in range(self.layout.queue) for name in job]
        names = [*first, *rows, *jobs, *last]
        scales = [self._scale_of(name.rpartition(".")[2]) for name in names]
        return Columns(
            tuple(names),
            np.array([logarithmic for logarithmic, _ in scales]),
            np.array([most for _, most in scales]),
        )

    def scaled(self, states: NDArray[np.int32]) -> NDArray[np.float32]:
        """The observations of states, float32 ``(n, size)`` from 0 to 1."""
        return self.columns.scaled(self.numbers(states))

    def write(self, states: NDArray[np.int32], out: NDArray[np.float32]) -> None:
        """Writes the same."""
        out[:] = self.scaled(states)

    def numbers(self, states: NDArray[np.int32]) -> Numbers:
        """The same as plain numbers: seconds, processor seconds, jobs and units."""
        layout = self.layout
        require_states(states, layout.space)
        n, r = states.shape[0], len(self.capacity)
        shown = layout.rows(states).astype(np.float64)
        offset, free = shown[:, :, :1], shown[:, :, 1:]
        used = np.asarray(self.capacity) - free
        waiting = states[:, [WAITING]].astype(np.float64)
        unseen = np.maximum(waiting - layout.queue, 0)
        jobs = self._jobs(states)
        if not self.by_events:
            rows = np.concatenate([used, free], axis=2)
            return np.concatenate([rows.reshape(n, -1), jobs, unseen], axis=1)
        rows = np.concatenate([offset, free, used], axis=2)
        first = np.argmax(rows[:, :, 1] > 0, axis=1)  # row 0 where all rows are full
        soonest = np.take_along_axis(rows, first[:, None, None], axis=1)[:, 0]
        remaining = _work(states[:, [layout.clock_at + REMAINING_WORK]])
        head = [remaining, soonest[:, : 1 + 2 * r], unseen, waiting]
        return np.concatenate([*head, rows.reshape(n, -1), jobs], axis=1)

    def _scale_of(self, name: str) -> tuple[bool, float]:
        """Whether a number is logarithmic, and what it is divided by."""
        if name in ("submitted", "requested_time", "offset"):
            return True, math.log1p(_MOST_SECONDS)
        if name in ("queued_work", "remaining_work"):
            return True, math.log1p(_MOST_SECONDS * self.capacity[0])
        if name in ("backlog", "waiting", "queue_size"):
            return True, math.log1p(_MOST_JOBS)
        if name == "fits":
            return False, 1.0
        return False, float(self.capacity[self.resources.index(name.partition("_")[2])])

    def _jobs(self, states: NDArray[np.int32]) -> Numbers:
        """Features of the jobs that are seen, ``(n, queue * features)``."""
        layout = self.layout
        jobs = layout.jobs(states).astype(np.float64)
        before = layout.arrivals(states).astype(np.float64)
        demand = jobs[:, :, DEMAND:]
        submitted = states[:, [layout.clock_at + TIME]] - jobs[:, :, WAITED]
        fits = (demand <= layout.free(states)[:, None]).all(axis=2)
        size, work, free_then, remaining = np.moveaxis(before, 2, 0)
        features = [submitted, jobs[:, :, ESTIMATE], *np.moveaxis(demand, 2, 0), size]
        features += [_work(work), free_then]
        if not self.by_events:
            features += [_work(remaining), np.maximum(size - layout.queue, 0)]
        listed = np.stack([*features, fits], axis=2)
        present = np.arange(layout.queue) < states[:, [WAITING]]
        return np.where(present[:, :, None], listed, 0.0).reshape(states.shape[0], -1)


def _work(log_thousandths: NDArray[np.int32] | Numbers) -> Numbers:
    """Processor seconds as a state has them, to its precision; small ones are whole."""
    work = np.expm1(log_thousandths / 1000.0)
    return np.where(work < 300, np.round(work), work)


OBSERVATIONS: Registry[Callable[[HPC], Observation]] = Registry(
    "observation", {"jobs": partial(features_observation, items="jobs", low=-LARGEST, high=LARGEST)}
)


@OBSERVATIONS.register("image")
def _image(world: HPC) -> Observation:
    """Section 4.4: the machine and the queue as rectangles of time x units."""
    seen = _at_moments(world)
    view = ImageView(seen.capacity, seen.layout, seen.horizon_step)
    return Observation(spaces.Box(0, 1, view.shape, np.uint8), view.draw, seen)


@OBSERVATIONS.register("compact")
def _compact(world: HPC) -> Observation:
    """Table 4.1: the same in numbers, as many for a machine of any size."""
    return compact_observation(_at_moments(world), by_events=False)


@OBSERVATIONS.register("events")
def _events(world: HPC) -> Observation:
    """Table 4.2: the compact observation of the semi-MDP, with the next expected ends."""
    if world.horizon_step:
        raise InputError(
            f"the observation events shows expected ends, so leave out horizon_step, but "
            f"{world.horizon_step} was given"
        )
    seen = world if world.horizon else replace(world, horizon=EVENT_HORIZON)
    return compact_observation(seen, by_events=True)


def compact_observation(world: HPC, by_events: bool) -> Observation:
    """The observation of table 4.1, or 4.2, of a world with a horizon."""
    view = CompactView(world.capacity, world.resources, world.layout, by_events)
    space = spaces.Box(0, 1, (len(view.columns.names),), np.float32)
    return Observation(space, view.write, world)


def _at_moments(world: HPC) -> HPC:
    """A world whose states show what is expected at regular moments."""
    step = world.horizon_step or world.time_step or MINUTE
    return replace(world, horizon=world.horizon or TIME_HORIZON, horizon_step=step)
