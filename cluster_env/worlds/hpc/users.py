"""Jobs of users with habits: what logs of sites have beyond sizes, run times and arrivals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.workloads.lublin import pass_through_weeks

_LIMITS = 60 * np.array([15, 30, 60, 120, 240, 480, 720, 1440, 2880])
"""Seconds that users ask for: a quarter of an hour to two days."""

_QUEUES = np.array([3600, 43_200])
"""Longest limits of queues 0 and 1; queue 2 takes the rest."""

_MOST_PROGRAMS = 4
_SESSION_JOBS = 4.0
_THINK_S = 600.0  # mean time between two jobs of a session


@dataclass(frozen=True)
class UsersWorkload:
    """Jobs of users who each have a few programs and submit them in sessions.

    A program has a size, a usual run time with some spread, a share of runs that fail soon, and a
    limit that its user always asks for. A few users submit most jobs. Sessions begin by day more
    than by night, and on weekdays more than on weekends; a jobset begins on a Monday at midnight.
    Jobs have the attributes ``user``, ``group`` and ``queue``; queues follow from limits.

    Attributes:
        jobs: in a jobset.
        load: work that arrives over what the machine can do, in each jobset; 0.9 is 90 %.
        users: number of users, 1 or more.
        weekend: arrivals on Saturdays and Sundays over those of a weekday, above 0.
    """

    processors: int = 256
    jobs: int = 256
    load: float = 0.85
    users: int = 40
    weekend: float = 0.4

    def __post_init__(self) -> None:
        if min(self.jobs, self.users) < 1 or not 1e-3 <= self.load < float("inf"):
            raise InputError(
                f"jobs and users must be 1 or more and load 0.001 or more, but {self.jobs:,}, "
                f"{self.users:,} and {self.load:g} were given"
            )
        if not 0 < self.weekend <= 1:
            raise InputError(f"weekend must be above 0 and at most 1, not {self.weekend:g}")

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        programs = self._programs(rng)
        # Sessions of one program each, more of them than are needed, by users of unequal activity.
        activity = 1.0 / np.arange(1, self.users + 1)
        owner = rng.choice(self.users, self.jobs, p=activity / activity.sum())
        first = _MOST_PROGRAMS * owner
        program = first + rng.integers(0, programs["num_programs"][owner])
        length = rng.geometric(1 / _SESSION_JOBS, self.jobs)
        session = np.repeat(np.arange(self.jobs), length)[: self.jobs]
        program = program[session]
        # Run times repeat by program; some runs fail soon, and limits are kept.
        usual = programs["median"][program] * np.exp(
            programs["spread"][program] * rng.standard_normal(self.jobs)
        )
        soon = np.exp(rng.uniform(math.log(0.005), math.log(0.5), self.jobs))
        fails = rng.random(self.jobs) < programs["failures"][program]
        estimate = programs["limit"][program]
        run = np.clip(np.ceil(np.where(fails, soon, 1.0) * usual), 1, estimate).astype(np.int64)
        size = programs["size"][program]
        # Gaps of sessions leave time for the work; the jobs of a session follow each other.
        span = float((run * size).sum()) / self.processors / self.load
        begin = np.cumsum(rng.exponential(1.0, self.jobs))[session]
        begin *= span / begin[-1]
        think = np.cumsum(rng.exponential(_THINK_S, self.jobs))
        starts = np.flatnonzero(np.diff(session, prepend=-1))
        even = begin + think - think[starts][session]
        order = np.argsort(even, kind="stable")
        even = even[order] * (span / even.max())
        arrival = pass_through_weeks(np.diff(even, prepend=0.0), self.weekend)
        owner = owner[session][order]
        return JobSet.of(
            arrival - arrival[0],
            run[order],
            size[order, None],
            attributes={
                "estimate": estimate[order],
                "user": owner + 1,
                "group": owner % max(1, self.users // 5) + 1,
                "queue": np.searchsorted(_QUEUES, estimate[order]),
            },
        )

    def _programs(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Habits of all users, `_MOST_PROGRAMS` rows for each, of which the first are used."""
        count = self.users * _MOST_PROGRAMS
        # Half of the programs run for less than half an hour; many ask for a power of two.
        median = np.exp(rng.uniform(math.log(60), math.log(43_200), count))
        log_size = rng.uniform(0, math.log2(self.processors) - 1, count)
        log_size = np.where(rng.random(count) < 0.75, np.round(log_size), log_size)
        size = np.where(rng.random(count) < 0.2, 1, np.floor(2.0**log_size)).astype(np.int64)
        spread = rng.uniform(0.05, 0.8, count)
        # Users leave room for slow runs and ask for the next usual limit; some always for the same.
        room = median * np.exp(spread) * rng.uniform(1.2, 4.0, count)
        limit = _LIMITS[np.minimum(np.searchsorted(_LIMITS, room), _LIMITS.size - 1)]
        lazy = rng.random(count) < 0.2
        return {
            "num_programs": rng.integers(1, _MOST_PROGRAMS, self.users, endpoint=True),
            "median": median,
            "size": size,
            "spread": spread,
            "limit": np.where(lazy, np.maximum(limit, 86_400), limit),
            "failures": rng.uniform(0.0, 0.25, count),
        }
