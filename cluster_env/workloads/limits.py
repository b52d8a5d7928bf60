"""What counts as the estimate of a job that names no time limit: the same in all readers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.workloads.records import Findings

LONGEST, RUN_TIME = "longest", "run-time"
"""The longest limit of the log, or the job's own run time; or a number of seconds."""

_USUAL = 0.99
"""Share of the limits that the longest is taken of: logs hold single ones of many years."""


def check_missing_limits(choice: str) -> None:
    """Refuses what is no choice.

    Raises:
        InputError: if it is neither `LONGEST` nor `RUN_TIME` nor a number of seconds.
    """
    if choice not in (LONGEST, RUN_TIME) and not (choice.isdecimal() and 0 < int(choice) < 2**31):
        raise InputError(
            f"missing_limits must be {LONGEST}, {RUN_TIME} or a number of seconds, not "
            f"'{choice[:40]}'"
        )


def estimates_of(
    limit: NDArray[np.int64],
    run: NDArray[np.int64],
    line: NDArray[np.int64],
    choice: str,
    findings: Findings,
    no_limit: Sequence[str] | None = None,
) -> NDArray[np.int64]:
    """Estimates of all jobs; those without a limit are noticed.

    A run time would tell a scheduler what nobody knew when the job was submitted. So by default the
    longest limit of the log counts, but for the largest hundredth, as where a partition has a limit
    that jobs without one get; the run time counts where it is longer, or no job has a limit.

    Args:
        limit: in seconds, int64 ``(num_jobs,)``; 0 or below where a job names none.
        run: in seconds, int64 ``(num_jobs,)``.
        line: of each job in the file, int64 ``(num_jobs,)``.
        choice: see `LONGEST`.
        findings: notice the jobs.
        no_limit: what stands in place of limits, for the notice.

    Returns:
        Seconds, int64 ``(num_jobs,)``.
    """
    missing = limit <= 0
    if not missing.any():
        return limit
    if choice == RUN_TIME or (choice == LONGEST and missing.all()):
        stand_in, words = run, "its run time counts"
    elif choice == LONGEST:
        longest = np.quantile(limit[~missing], _USUAL, method="higher")
        stand_in, words = np.maximum(run, longest), "the log's longest counts"
    else:
        stand_in, words = np.maximum(run, int(choice)), f"{int(choice):,} s count"
    for k in np.flatnonzero(missing).tolist():
        said = (no_limit[k].upper() if no_limit is not None else "") or "no limit recorded"
        findings.notice(f"has no time limit ({said}): {words}", int(line[k]))
    return np.where(missing, stand_in, limit)
