"""What is known of a job when it is submitted: what others like it took of what was asked for.

A run time is learned as ln(run / limit), which is at most 0 where limits are kept, in `BINS` bins.
Of each group of jobs that are alike in some way (`GROUPS`), the shares of the bins are known among
those that had ended in the schedule at hand. Later ones count more.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.jobs import JobSet
from cluster_env.forecasting.past import asked, user_of

SHORTEST_S = 10
"""Seconds that shorter jobs count as, as in the bounded slowdown."""

EDGES = np.linspace(-8.0, -0.02, 23)
"""Between the bins of ln(run / limit); the last bin has jobs that took all that they asked for."""

BINS = EDGES.size + 1

CENTERS = np.concatenate([EDGES[:1] - 0.3, (EDGES[1:] + EDGES[:-1]) / 2, [0.0]])
"""ln(run / limit) in the middle of each bin."""

_USER, _LIMIT, _SIZE = range(3)

GROUPS = (
    ((_USER, _LIMIT, _SIZE), 4),
    ((_USER, _LIMIT, _SIZE), 20),
    ((_USER, _SIZE), 20),
    ((_USER, _LIMIT), 20),
    ((_USER,), 4),
    ((_USER,), 30),
    ((_LIMIT, _SIZE), 1000),
    ((), 5000),
)
"""In what the jobs of a group agree, and how many of them count at most, in the mean.

Where users do not matter, limits and sizes agree up to a factor of two.
"""

FACTS = 3 + 2 * len(GROUPS)
"""Numbers that are known of a job beside the shares; see `Known`."""

Shares = NDArray[np.float32]  # (num_jobs, ..., BINS)


class Known(NamedTuple):
    """What is known of jobs at their submission, and what came of them.

    Attributes:
        facts: ln of limit, processors and their share of the machine, then of each group ln(1 +
            jobs that had ended) and ln(1 + seconds since the last of them), float32 ``(num_jobs,
            FACTS)``.
        shares: of the bins in each group, float32 ``(num_jobs, len(GROUPS), BINS)``; 0 in a group
            of which no job had ended.
        bin: that of each job's run time, int64 ``(num_jobs,)``.
    """

    facts: NDArray[np.float32]
    shares: Shares
    bin: NDArray[np.int64]

    def rows(self, which: NDArray[np.int64] | slice) -> "Known":
        """Some of the jobs."""
        return Known(self.facts[which], self.shares[which], self.bin[which])


def known_of(jobset: JobSet, finish: NDArray[np.int64], processors: int) -> Known:
    """What was known of each job of a jobset in a schedule in which they finish then.

    Args:
        jobset: all jobs, by arrival.
        finish: int64 ``(num_jobs,)``, in seconds of the clock of the arrivals.
        processors: of the machine.
    """
    limit, size = asked(jobset), jobset.demand[:, 0].astype(np.int64)
    took = np.log(np.maximum(jobset.duration, SHORTEST_S) / np.maximum(limit, SHORTEST_S))
    place = np.searchsorted(EDGES, took, side="right").astype(np.int64)
    arrival, by_finish = jobset.arrival.astype(np.int64), np.argsort(finish, kind="stable")
    own = (user_of(jobset), limit, size)
    wide = (own[_USER], np.log2(limit).astype(np.int64), np.log2(size).astype(np.int64))
    facts = [np.log(limit) / 10, np.log(size) / 10, np.log(size / processors) / 10]
    shares = np.zeros((jobset.num_jobs, len(GROUPS), BINS), np.float32)
    for which, (columns, most) in enumerate(GROUPS):
        source = own if _USER in columns else wide
        group = _numbered([source[column] for column in columns], jobset.num_jobs)
        ended, since = np.zeros((2, jobset.num_jobs))
        table = np.zeros((int(group.max(initial=0)) + 1, BINS + 2))
        _follow(
            arrival, finish, by_finish, group, place, most, table, shares[:, which], ended, since
        )
        facts += [np.log1p(ended) / 5, np.log1p(since) / 10]
    return Known(np.stack(facts, axis=1).astype(np.float32), shares, place)


def _numbered(columns: list[NDArray[np.int64]], num_jobs: int) -> NDArray[np.int64]:
    """Numbers from 0 for jobs that agree in all columns, int64 ``(num_jobs,)``."""
    if not columns:
        return np.zeros(num_jobs, np.int64)
    _, number = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return number.astype(np.int64).reshape(-1)


@njit(cache=True, nogil=True)
def _follow(
    arrival: NDArray[np.int64],
    finish: NDArray[np.int64],
    by_finish: NDArray[np.int64],
    group: NDArray[np.int64],
    place: NDArray[np.int64],
    most: int,
    table: NDArray[np.float64],
    shares: Shares,
    ended: NDArray[np.float64],
    since: NDArray[np.float64],
) -> None:
    """Goes through the jobs by arrival, and beside them by finish; the table has a row a group."""
    bins, done = shares.shape[1], 0
    for job in range(arrival.size):
        while done < by_finish.size and finish[by_finish[done]] <= arrival[job]:
            other = by_finish[done]
            row = table[group[other]]
            row[bins] += 1
            weight = 1.0 / min(row[bins], float(most))
            for b in range(bins):
                row[b] *= 1 - weight
            row[place[other]] += weight
            row[bins + 1] = finish[other]
            done += 1
        row = table[group[job]]
        for b in range(bins):
            shares[job, b] = row[b]
        ended[job] = row[bins]
        since[job] = arrival[job] - row[bins + 1] if row[bins] > 0 else 1e9
