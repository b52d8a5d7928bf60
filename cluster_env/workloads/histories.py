"""What was known, when a job was submitted, of jobs like it that had ended by then."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.workloads.recorded import RecordedJobs

LAST = 2
"""Jobs that had ended last whose values are known one by one."""

COLUMNS = ("ended", "mean", *(f"last_{k}" for k in range(LAST)))
"""What is known of a group of jobs: how many had ended, and their values, NaN where none has."""

_ENDED, _MEAN, _LAST = range(3)


def ends_in_log(jobs: RecordedJobs) -> NDArray[np.int64]:
    """When each job ended at the site, by the log's clock, int64 ``(num_jobs,)``.

    A log that does not say how long its jobs waited is taken as if none had.
    """
    return jobs.start + jobs.run


def group(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Numbers from 0 for jobs that agree in all columns, int64 ``(num_jobs,)``."""
    _, numbers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return numbers.astype(np.int64).reshape(-1)


def histories(
    submit: NDArray[np.int64],
    end: NDArray[np.int64],
    values: NDArray[np.float64],
    groups: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Of each job's group, what was known when it was submitted, ``(num_jobs, len(COLUMNS))``.

    Jobs are sorted by ``submit``; the values of each are known from its ``end`` on. Groups are
    numbers from 0. All are ``(num_jobs,)``.
    """
    out = np.full((submit.size, len(COLUMNS)), np.nan)
    # A row for each group, of which nothing is known but that no job has ended.
    known = np.full((int(groups.max(initial=-1)) + 1, len(COLUMNS)), np.nan)
    known[:, _ENDED] = 0
    _follow(submit, end, np.argsort(end, kind="stable"), values, groups, known, out)
    return out


@njit(cache=True, nogil=True)
def _follow(
    submit: NDArray[np.int64],
    end: NDArray[np.int64],
    by_end: NDArray[np.int64],
    values: NDArray[np.float64],
    groups: NDArray[np.int64],
    known: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Goes through the log once: jobs by submission, and beside them the jobs by their end."""
    place = 0
    for job in range(submit.size):
        # All jobs that have ended by now are known before this one is looked at.
        while place < by_end.size and end[by_end[place]] <= submit[job]:
            ended = by_end[place]
            _learn(known[groups[ended]], values[ended])
            place += 1
        row = known[groups[job]]
        for column in range(row.size):  # assigned at once, it takes numba seconds to compile
            out[job, column] = row[column]


@njit(cache=True, nogil=True)
def _learn(row: NDArray[np.float64], value: float) -> None:
    """Adds the value of a job that has ended to what is known of its group."""
    first = row[_ENDED] == 0
    row[_ENDED] += 1
    # Means by their increments, so that no sum of all values has to be kept.
    row[_MEAN] = value if first else row[_MEAN] + (value - row[_MEAN]) / row[_ENDED]
    # The last values move on by a place, from the back, so that none is overwritten unread.
    for k in range(LAST - 1, 0, -1):
        row[_LAST + k] = row[_LAST + k - 1]
    row[_LAST] = value
