"""The thesis's compact observations (Cunha, tables 4.1 and 4.2), as numbers in a row."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.hpc.state import AT_ARRIVAL, StateLayout

_MOST_SECONDS = 2.0**31
_MOST_JOBS = 1e6

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """What the numbers of an observation are, and how they are brought to 0 to 1.

    Attributes:
        names: of the numbers, in order.
        logarithmic: of times, work and numbers of jobs, ``ln(1 + it)`` is taken (section 4.7.3).
        most: what a number is divided by then; nothing larger is told apart.
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
        layout: of the states.
        by_events: whether rows are expected ends.
    """

    capacity: tuple[int, ...]
    resources: tuple[str, ...]
    layout: StateLayout
    by_events: bool

    @cached_property
    def columns(self) -> Columns:
        """Names and scales of all numbers."""
        heads = [name for part in self._parts for name in part]
        kinds = [self._scale_of(name.rpartition(".")[2]) for name in heads]
        return Columns(
            tuple(heads),
            np.array([logarithmic for logarithmic, _ in kinds]),
            np.array([most for _, most in kinds]),
        )

    def scaled(self, states: NDArray[np.int32]) -> NDArray[np.float32]:
        """The observations of states, float32 ``(n, size)`` from 0 to 1."""
        return self.columns.scaled(self.numbers(states))

    def numbers(self, states: NDArray[np.int32]) -> Numbers:
        """The same as plain numbers: seconds, processor seconds, jobs and units."""
        rows, jobs = self._rows(states), self._jobs(states)
        waiting = states[:, :1].astype(np.float64)
        unseen = np.maximum(waiting - self.layout.queue, 0)
        if not self.by_events:
            parts = [rows[:, :, 1:].reshape(states.shape[0], -1), jobs, unseen]
            return np.concatenate(parts, axis=1)
        r = len(self.capacity)
        first = np.argmax(rows[:, :, 1] > 0, axis=1)  # row 0 where all rows are full
        soonest = np.take_along_axis(rows, first[:, None, None], axis=1)[:, 0]
        remaining = _work(states[:, [self.layout.clock_at + 1]])
        head = [remaining, soonest[:, : 1 + 2 * r], unseen, waiting]
        return np.concatenate([*head, rows.reshape(states.shape[0], -1), jobs], axis=1)

    @property
    def _parts(self) -> list[list[str]]:
        """Names of the parts, in order."""
        used, free = ([f"{what}_{name}" for name in self.resources] for what in ("used", "free"))
        job = ["submitted", "requested_time", *(f"requested_{name}" for name in self.resources)]
        job += list(AT_ARRIVAL)
        if self.by_events:
            job[-1:] = ["fits"]
            row = ["offset", *free, *used]
            head = ["remaining_work", *(f"next_free.{name}" for name in row), "backlog", "waiting"]
        else:
            job += ["backlog", "fits"]
            row, head = [*used, *free], []
        rows = [f"row{k}.{name}" for k in range(self.layout.horizon) for name in row]
        jobs = [f"job{k}.{name}" for k in range(self.layout.queue) for name in job]
        return [head, rows, jobs] if self.by_events else [rows, jobs, ["backlog"]]

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

    def _rows(self, states: NDArray[np.int32]) -> Numbers:
        """Offset, then units of each resource: free and in use by events, else in use and free."""
        layout, r = self.layout, len(self.capacity)
        shown = states[:, layout.rows_at : layout.arrivals_at]
        rows = shown.reshape(states.shape[0], layout.horizon, 1 + r).astype(np.float64)
        offset, free = rows[:, :, :1], rows[:, :, 1:]
        used = np.asarray(self.capacity) - free
        return np.concatenate(
            [offset, free, used] if self.by_events else [offset, used, free], axis=2
        )

    def _jobs(self, states: NDArray[np.int32]) -> Numbers:
        """Features of the jobs that are seen, ``(n, queue * features)``."""
        layout, n, r = self.layout, states.shape[0], len(self.capacity)
        shown = states[:, layout.jobs_at : layout.clock_at].reshape(n, layout.queue, -1)
        jobs = shown.astype(np.float64)
        before = states[:, layout.arrivals_at :].reshape(n, layout.queue, -1).astype(np.float64)
        free = states[:, None, layout.jobs_at - r : layout.jobs_at]
        submitted = states[:, [layout.clock_at]] - jobs[:, :, 1]
        fits = (jobs[:, :, 2:] <= free).all(axis=2)
        size, work, free_then, remaining = np.moveaxis(before, 2, 0)
        features = [submitted, jobs[:, :, 0], *np.moveaxis(jobs[:, :, 2:], 2, 0), size]
        features += [_work(work), free_then]
        if not self.by_events:
            features += [_work(remaining), np.maximum(size - layout.queue, 0)]
        listed = np.stack([*features, fits], axis=2)
        present = np.arange(layout.queue) < states[:, :1]
        return np.where(present[:, :, None], listed, 0.0).reshape(n, -1)


def _work(log_thousandths: NDArray[np.int32] | Numbers) -> Numbers:
    """Processor seconds as a state has them, to its precision; small ones are whole."""
    work = np.expm1(log_thousandths / 1000.0)
    return np.where(work < 300, np.round(work), work)
