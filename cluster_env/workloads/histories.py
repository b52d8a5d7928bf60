"""What was known, when a job was submitted, of jobs like it that had ended by then."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.workloads.recorded import RecordedJobs

LAST = 3
"""Jobs that had ended last whose values are known one by one."""

FADING = 0.3
"""Weight of the latest job in the fading mean; lowest and highest fade by a third of it."""

COLUMNS = (
    "ended",
    "mean",
    "fading",
    "lowest",
    "highest",
    "open",
    *(f"last_{k}" for k in range(LAST)),
)
"""What is known of a group of jobs; NaN for the values where none has ended.

``ended`` and ``open`` count the jobs that had ended, and those that were submitted and had not.
"""


def ends_in_log(jobs: RecordedJobs) -> NDArray[np.int64]:
    """When each job ended at the site, by the log's clock, int64 ``(num_jobs,)``.

    A log that does not say how long its jobs waited is taken as if none had.
    """
    waited = 0 if jobs.wait is None else jobs.wait
    ends: NDArray[np.int64] = jobs.submit + waited + jobs.run
    return ends


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
    """Of each job's group, what was known when it was submitted.

    Args:
        submit: int64 ``(num_jobs,)``, never falling.
        end: int64 ``(num_jobs,)``; a job's value is known from then on.
        values: float64 ``(num_jobs,)``.
        groups: int64 ``(num_jobs,)``, numbers from 0.

    Returns:
        float64 ``(num_jobs, len(COLUMNS))``.
    """
    out = np.full((submit.size, len(COLUMNS)), np.nan)
    known = np.full((int(groups.max(initial=-1)) + 1, len(COLUMNS)), np.nan)
    known[:, [0, 5]] = 0
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
    place = 0
    for job in range(submit.size):
        while place < by_end.size and end[by_end[place]] <= submit[job]:
            ended = by_end[place]
            _learn(known[groups[ended]], values[ended])
            place += 1
        row = known[groups[job]]
        for column in range(row.size):  # assigned at once, it takes numba seconds to compile
            out[job, column] = row[column]
        row[5] += 1


@njit(cache=True, nogil=True)
def _learn(row: NDArray[np.float64], value: float) -> None:
    first = row[0] == 0
    row[0] += 1
    row[5] -= 1
    row[1] = value if first else row[1] + (value - row[1]) / row[0]
    row[2] = value if first else row[2] + FADING * (value - row[2])
    row[3] = value if first else min(value, row[3] + FADING / 3 * (value - row[3]))
    row[4] = value if first else max(value, row[4] + FADING / 3 * (value - row[4]))
    for k in range(LAST - 1, 0, -1):
        row[6 + k] = row[6 + k - 1]
    row[6] = value
