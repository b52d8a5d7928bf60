"""Jobsets that lead to an instant and on: what runs, what waits, and what arrives later."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.forecasting.moments import MachineMoment
from cluster_env.forecasting.past import Seconds, SitePast, asked, user_of
from cluster_env.objectives import get_objective
from cluster_env.sites.requests import DEFAULTS
from cluster_env.workloads.estimates import BELIEVED

BLOCK_S = 7 * 86_400
"""Length of a stretch of the past that arrives again."""

DAY_S = 86_400
LONGEST_S = 2**29
"""Seconds that a sequence reaches back at most."""

_NUMBERED = ("job_id", "after", "array")  # attributes by which jobs know each other


@dataclass(frozen=True, eq=False)
class Later:
    """Jobs that arrive later.

    Attributes:
        jobs: of the past.
        rows: those that arrive again, int64 ``(num_later,)``, as the next three.
        after: so many seconds after the instant.
        run: for how long they run.
        stretch: number of the stretch of which each is, from 1 on.
    """

    jobs: JobSet
    rows: NDArray[np.int64]
    after: Seconds
    run: Seconds
    stretch: Seconds


def nothing(jobs: JobSet) -> Later:
    """No job of the past arrives again."""
    none = np.zeros(0, np.int64)
    return Later(jobs, none, none, none, none)


def stretch_of(span: int) -> int:
    """Length of the stretches that a past of so many seconds consists of: weeks, or days."""
    return BLOCK_S if span >= 2 * BLOCK_S else DAY_S


def arrivals(past: SitePast, reach: int, rng: np.random.Generator) -> Later:
    """Stretches of the past, one after the other, until so many seconds after the instant.

    Jobs of reservations do not come again: their reservations are over.
    """
    if not reach or not past.jobs.num_jobs:
        return nothing(past.jobs)
    arrival = past.jobs.arrival
    span = past.time - int(arrival[0])
    block = stretch_of(span)
    most = max(span // block, 1)
    rows, after, numbers = [], [], []
    for number, begin in enumerate(range(0, reach, block), start=1):
        first = past.time - int(rng.integers(1, most + 1)) * block
        last = first + min(block, reach - begin)
        stretch = slice(*np.searchsorted(arrival, [first + 1, last + 1]))
        rows.append(np.arange(stretch.start, stretch.stop))
        after.append(arrival[stretch].astype(np.int64) - first + begin)
        numbers.append(np.full(rows[-1].size, number))
    chosen, seconds, number_of = (np.concatenate(parts) for parts in (rows, after, numbers))
    if "reservation" in past.jobs.attributes:
        free = past.jobs.attributes["reservation"][chosen] < 0
        chosen, seconds, number_of = chosen[free], seconds[free], number_of[free]
    return Later(past.jobs, chosen, seconds, past.run[chosen], number_of)


class JobSequence:
    """The jobs that lead to an instant, the same in all futures: what runs, then what waits.

    On one pool the jobs that run start at the beginning, and one job holds what is free. At a site
    the simulator is told where they run (`SiteSimulator.begin`), and they last as long as they
    still do.

    Attributes:
        now: the instant by the clock of the sequence.
        begin: when those that run start in it.
        num_before: jobs that run, and on a pool one that holds what is free, if anything is.
        num_waiting: jobs that wait, which come next.
    """

    def __init__(self, moment: MachineMoment, world: Any) -> None:
        jobs, running, waiting = moment.jobs, moment.running, moment.waiting
        self._site = world.site
        capacity = np.asarray(world.capacity, np.int64)
        held = jobs.demand[running].astype(np.int64)
        free = capacity - held.sum(axis=0)
        if free.min() < 0:
            raise InputError(
                f"the jobs that run hold {held.sum(axis=0).tolist()} of "
                f"{', '.join(world.resources)}, more than the machine's {capacity.tolist()}"
            )
        # Else nothing can start, nor be held.
        num_free = int(free[0] > 0 and self._site is None)
        waited = moment.time - jobs.arrival[waiting].astype(np.int64)
        longest = min(int(waited.max(initial=0)), LONGEST_S)
        self.now = longest + int(self._site is None)
        self.begin = 0 if self._site is None else self.now
        self.num_before, self.num_waiting = running.size + num_free, waiting.size
        self._order, self._num_free = np.concatenate([running, waiting]), num_free
        self._elapsed = (moment.time - moment.start[running]).astype(np.int64)
        self._moment = moment
        before = np.zeros(self.num_before, np.int64)
        self._arrival = np.concatenate([before, self.now - np.clip(waited, 0, longest)])
        self._demand = np.vstack([free[None][:num_free], held, jobs.demand[waiting]])
        self._believed = {name: self._lasting(believed(jobs, name)) for name in BELIEVED}
        if self._site is None:
            self._believed["order_estimate"][: self.num_before] = 1  # any rule starts them at once

    def _lasting(self, seconds: Seconds) -> Seconds:
        """Lengths in the sequence of jobs that last for so long in all, int64 ``(num_jobs,)``.

        What is free is held up to the instant, and what runs ends as long after it as really.
        """
        ordered, num = seconds[self._order], self._elapsed.size
        left = np.maximum(ordered[:num] - self._elapsed, 1)
        left += self.now if self._site is None else 0
        return np.concatenate([np.full(self._num_free, self.now), left, ordered[num:]])

    def jobset(self, run: Seconds, later: Later) -> JobSet:
        """One future, from run times of the moment's jobs, int64 ``(num_jobs,)``."""
        jobs, more, rows = self._moment.jobs, later.jobs, later.rows
        columns = {
            name: np.concatenate([known, believed(more, name)[rows]])
            for name, known in self._believed.items()
        }
        if self._site is None:
            nobody = np.zeros(self._num_free, np.int64)
            columns["user"] = np.concatenate(
                [nobody, user_of(jobs)[self._order], user_of(more)[rows]]
            )
            submit = np.concatenate([self._arrival - self.now, later.after]) + self._moment.time
            columns["submit"] = np.maximum(submit, 0)
        else:
            columns |= self._of_site(later)
        return JobSet.of(
            np.concatenate([self._arrival, self.now + later.after]),
            np.concatenate([self._lasting(run), later.run]),
            np.vstack([self._demand, more.demand[rows]]),
            attributes=columns,
        )

    def load(self, simulator: Any, jobsets: Sequence[JobSet]) -> None:
        """Loads futures, to be played from the instant on."""
        # Jobs that run may be such as could not start any more.
        simulator.checked = self._site is not None
        simulator.load(jobsets, get_objective("completion_time"))
        if self._site is not None:
            moment = self._moment
            clock = moment.time + moment.shift - self.now
            watched = self.num_before + self.num_waiting
            simulator.begin(moment.nodes, self.now, clock, decided=moment.decided, watched=watched)

    def _of_site(self, later: Later) -> dict[str, NDArray[np.int64]]:
        """Attributes that a site reads; jobs that come again have numbers of their own."""
        time = self._moment.time + self._moment.shift
        now, again = self._moment.jobs.attributes, later.jobs.attributes
        submit = now.get("submit", self._moment.jobs.arrival + self._moment.shift)
        columns = {"submit": np.concatenate([submit[self._order], time + later.after])}
        known = [
            some[name].max(initial=0) for some in (now, again) for name in _NUMBERED if name in some
        ]
        shift = 1 + int(max(known, default=0))
        defaults = {
            **DEFAULTS,
            "partition": self._site.default_partition,
            "job_id": -1,
            "after": -1,
        }
        for name, default in defaults.items():
            if name in now or name in again:
                first = _column(self._moment.jobs, name, default)[self._order]
                second = _column(later.jobs, name, default)[later.rows]
                if name in _NUMBERED:
                    stretch = later.stretch[:, None]
                    second = np.where(second >= 0, second + shift * stretch, second)
                columns[name] = _stacked(first, second)
        return columns


def _column(jobs: JobSet, name: str, default: int) -> NDArray[np.int64]:
    """An attribute with rows, ``(num_jobs, any)``."""
    values = jobs.attributes.get(name, np.full(jobs.num_jobs, default))
    return np.asarray(values if values.ndim > 1 else values[:, None], np.int64)


def _stacked(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows below others, filled up with -1; one value a row is no row."""
    width = max(first.shape[1], second.shape[1])
    if width == 1:
        return np.concatenate([first[:, 0], second[:, 0]])
    rows = [
        np.pad(one, [(0, 0), (0, width - one.shape[1])], constant_values=-1)
        for one in (first, second)
    ]
    return np.vstack(rows)


def believed(jobs: JobSet, name: str) -> Seconds:
    """One of `BELIEVED`, or what the user asked for."""
    return np.asarray(jobs.attributes.get(name, asked(jobs)), np.int64)
