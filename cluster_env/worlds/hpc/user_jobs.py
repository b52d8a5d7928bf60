"""Jobs of users who ask for far more time than they need, each in a way that only its jobs show."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet

LIMITS_S = (4 * 3600, 24 * 3600)
"""Seconds that the first and the last user ask for; the others ask for times between them."""

LEAST_SHARE = 0.001
"""Of its limit that a user's jobs take in the median; all orders of magnitude up to 1 are equally
likely."""

SPREAD = 0.3
"""Standard deviation of ln(run time) of one user's jobs."""

WIDEST = 8
"""The widest jobs have one processor in so many of the machine; all orders of magnitude up to it
are equally likely."""

PHASES = 4
"""Parts of a jobset with as many jobs, in each of which other users are busy."""


@dataclass(frozen=True)
class UsersWorkload:
    """Users who come and go, and whose run times are hidden behind what they ask for.

    Each user asks for one time limit for all its jobs, so that the limit tells users apart. Which
    share of it the jobs take follows from `habits`, and nothing that is seen of a waiting job says
    it. How busy users are is drawn anew in each of `PHASES` parts of a jobset, from all shares with
    equal probability; gaps between arrivals are those of chance, and keep the load. The class of a
    job is its user.

    Attributes:
        jobs: in a jobset.
        load: work that arrives over what the machine can do, on average in each part.
        users: 2 to 256.
        habits: number of the site, from which the shares of its users are drawn.
        told: whether it is believed of each job that it takes as long as its user's jobs take on
            average, and not what the user asked for.
    """

    processors: int = 256
    jobs: int = 256
    load: float = 1.2
    users: int = 6
    habits: int = 0
    told: bool = False

    def __post_init__(self) -> None:
        if (
            self.jobs < 1
            or not 2 <= self.users <= 256
            or self.habits < 0
            or not 1e-3 <= self.load < math.inf
        ):
            raise InputError(
                f"users need 1 job or more, a load of 0.001 or more, 2 to 256 users and habits of "
                f"0 or more, but {self.jobs}, {self.load:g}, {self.users} and {self.habits} were "
                f"given"
            )

    def after(self, jobs: int) -> "UsersWorkload":
        """So many jobs that may arrive after an instant, whoever is busy then."""
        return replace(self, jobs=jobs)

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        largest = math.log(max(self.processors // WIDEST, 1))
        size = np.rint(np.exp(rng.uniform(0.0, largest, self.jobs))).astype(np.int64)
        mean_size = (math.exp(largest) - 1) / largest if largest else 1.0  # but for the rounding
        user, gap = np.empty(self.jobs, np.int64), rng.exponential(size=self.jobs)
        for part in np.array_split(np.arange(self.jobs), PHASES):
            busy = rng.dirichlet(np.ones(self.users))
            user[part] = rng.choice(self.users, part.size, p=busy)
            gap[part] *= busy @ self._mean * mean_size / self.processors / self.load
        normal = rng.standard_normal(self.jobs)
        run = np.ceil(np.exp(np.log(self._median[user]) + SPREAD * normal))
        limit = self._limit[user]
        arrival = np.cumsum(gap).astype(np.int64)
        known = {"estimate": limit, "user": user}
        if self.told:
            believed = np.ceil(self._mean[user])
            known |= {"order_estimate": believed, "reserve_estimate": believed}
        run = np.clip(run, 1, limit)
        start = arrival[0]
        return JobSet.of(arrival - start, run, size[:, None], job_class=user, attributes=known)

    @cached_property
    def _limit(self) -> NDArray[np.float64]:
        """Whole seconds that each user asks for, float64 ``(users,)``."""
        first, last = map(math.log, LIMITS_S)
        return np.rint(np.exp(np.linspace(first, last, self.users)))

    @cached_property
    def _median(self) -> NDArray[np.float64]:
        """Seconds that the jobs of each user take in the median, float64 ``(users,)``."""
        habits = np.random.default_rng(self.habits)
        share = np.exp(habits.uniform(math.log(LEAST_SHARE), 0.0, self.users))
        return self._limit * share

    @cached_property
    def _mean(self) -> NDArray[np.float64]:
        """Seconds that they take on average, none above the limit, float64 ``(users,)``."""
        # Of a lognormal number that is cut: its part below the limit, and the limit for the rest.
        cut = (np.log(self._limit) - np.log(self._median)) / SPREAD
        below, whole = (
            np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in cut - shift])
            for shift in (SPREAD, 0.0)
        )
        part: NDArray[np.float64] = self._median * math.exp(SPREAD**2 / 2) * below
        return part + self._limit * (1 - whole)
