"""What is known of a site's past, and run times that are drawn from it.

`RunTimes` draws run times as shares of what users ask for, from jobs that have ended: of the same
user, limit and size; of the user; of jobs of about that limit and size; of the site. A group counts
by its jobs, and a job that runs draws from those that ran for longer. In one future the jobs of a
user have similar ranks (`ALIKE`), because in logs they fail or last together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet

Seconds = NDArray[np.int64]

NEVER = 2**62

ALIKE = 0.8
"""Correlation between the ranks of the run times of a user's jobs in one future; where the log does
not know the users, of jobs of one limit and size. Chosen on KTH-SP2, as the next two."""

_PARENT = 20.0  # as how many jobs the wider group counts
_LATEST = (8, 20, 1000, 5000)  # jobs of a group of each kind that count: those that ended last


@dataclass(frozen=True, eq=False)
class SitePast:
    """What is known of a site at an instant.

    Attributes:
        time: the instant, in seconds of the clock of the arrivals, which may be another than that
            of a `cluster_env.forecasting.starts.MachineMoment`.
        jobs: submitted by then, by arrival.
        run: for how long they ran, int64 ``(num_jobs,)``; what was asked for, of those that had not
            ended.
        end: when they ended, int64 ``(num_jobs,)``; `NEVER` for those that had not.
    """

    time: int
    jobs: JobSet
    run: Seconds
    end: Seconds


def asked(jobs: JobSet) -> Seconds:
    """What users asked for, int64 ``(num_jobs,)``; the run times where that is not known."""
    return np.asarray(jobs.attributes.get("estimate", jobs.duration), np.int64)


class RunTimes:
    """Draws run times from what a site's past says of its users' estimates.

    Args:
        past: of the site.
        kills: whether no job outlives its estimate.
    """

    def __init__(self, past: SitePast, kills: bool) -> None:
        ended = np.flatnonzero(past.end < NEVER)
        ended = ended[np.argsort(past.end[ended], kind="stable")]
        users = user_of(past.jobs)[ended]
        self._kills = kills
        self._has_users = bool(users.size and users.min() < users.max())
        self._ratio = past.run[ended] / asked(past.jobs)[ended]
        self._known = [kind[ended] for kind in _kinds(past.jobs, self._has_users)]

    def draw(
        self, jobs: JobSet, elapsed: Seconds, num_futures: int, rng: np.random.Generator
    ) -> Seconds:
        """Run times in all, int64 ``(num_futures, num_jobs)``, each longer than what has passed.

        Args:
            jobs: that run or wait.
            elapsed: for how long each has run, int64 ``(num_jobs,)``.
            num_futures: how often to draw.
            rng: the random numbers.
        """
        limit, kinds = asked(jobs), _kinds(jobs, self._has_users)
        shape = (num_futures, jobs.num_jobs)
        own, which = rng.standard_normal(shape), rng.random(shape)
        _, owner = np.unique(kinds[1], return_inverse=True)
        shared = rng.standard_normal((num_futures, int(owner.max(initial=-1)) + 1))
        rank = _normal_share(np.sqrt(ALIKE) * shared[:, owner] + np.sqrt(1 - ALIKE) * own)
        ratio, found = np.empty(shape), dict[tuple[int, int], NDArray[np.float64]]()
        for job in range(jobs.num_jobs):
            groups = [self._group(level, int(kind[job]), found) for level, kind in enumerate(kinds)]
            least = float(elapsed[job] / limit[job])
            ratio[:, job] = _ratios(groups, least, rank[:, job], which[:, job])
        run = np.rint(ratio * limit)
        if self._kills:
            run = np.minimum(run, limit)
        return np.maximum(run, elapsed + 1).astype(np.int64)

    def _group(
        self, level: int, key: int, found: dict[tuple[int, int], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """The shares of a group, rising; found once for all jobs of the group."""
        if (level, key) not in found:
            same = np.flatnonzero(self._known[level] == key)[-_LATEST[level] :]
            found[level, key] = np.sort(self._ratio[same])
        return found[level, key]


def _ratios(
    groups: list[NDArray[np.float64]],
    least: float,
    rank: NDArray[np.float64],
    which: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Shares above the least one: chance chooses a group, the rank a job of it.

    ``groups`` begin with the closest.
    """
    begins = [int(np.searchsorted(one, least, side="right")) for one in groups]
    left, weights = 1.0, []
    for place, (one, begin) in enumerate(zip(groups, begins, strict=True)):
        is_last = place + 1 == len(groups)
        share = left if is_last else left * one.size / (one.size + _PARENT)
        left -= share
        # By Bayes' rule: a group of which few ran for so long is hardly the job's.
        weights.append(share * (one.size - begin) / one.size if one.size else 0.0)
    total = np.cumsum(weights)
    if total[-1] <= 0:
        if not groups[-1].size and least < 1:  # nobody knows anything: the user is believed
            return np.ones(rank.size)
        return least + rank * max(1.0 - least, 0.2 * least)  # nobody ran for so long
    chosen = np.searchsorted(total, which * total[-1], side="right")
    ratio = np.empty(rank.size)
    for place, (one, begin) in enumerate(zip(groups, begins, strict=True)):
        mine = chosen == place
        index = begin + (rank[mine] * (one.size - begin)).astype(np.int64)
        ratio[mine] = one[np.minimum(index, one.size - 1)]
    return ratio


def _normal_share(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The normal distribution function to 1e-7, by Abramowitz and Stegun, 26.2.17."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    sum_ = 1.781477937 + t * (-1.821255978 + t * 1.330274429)
    sum_ = t * (0.319381530 + t * (-0.356563782 + t * sum_))
    tail = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * sum_
    return np.where(z > 0, 1 - tail, tail)


def user_of(jobs: JobSet) -> Seconds:
    """Numbers of the users, int64 ``(num_jobs,)``; 0 where they are not known."""
    return np.asarray(jobs.attributes.get("user", np.zeros(jobs.num_jobs)), np.int64)


def _kinds(jobs: JobSet, has_users: bool) -> list[Seconds]:
    """Which group of each kind each job is of, by numbers, from the closest kind on."""
    user, limit, size = user_of(jobs), asked(jobs), jobs.demand[:, 0].astype(np.int64)
    about = np.log2(limit).astype(np.int64) * 64 + np.log2(size).astype(np.int64)
    own = (user * 1_000_003 + limit) * 1_000_003 + size
    # Where users are not known, jobs of one limit and size are what is closest to one user's.
    return [own, user if has_users else own, about, np.zeros(jobs.num_jobs, np.int64)]
