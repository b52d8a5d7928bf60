"""Predicted run times in place of what users ask for: corrections in front of any rule.

Users ask for too much, and orders and reservations rest on what they ask for. A correction gives
each job of a log two estimates: one while it waits, for its order and for backfilling; and one
while it runs, for reservations, which simulators raise while the job outlives it. It knows the run
times of jobs that had ended at the site that wrote the log when the job was submitted
(`cluster_env.workloads.histories.ends_in_log`), and nothing of others. So an estimate is a column
of the log, the same for every rule that the log is replayed with, as if the site had kept it beside
its own scheduler.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.registry import Registry
from cluster_env.workloads.histories import COLUMNS, ends_in_log, group, histories
from cluster_env.workloads.recorded import RecordedJobs

USER = "user"
"""The correction that leaves everything as the user asked for it."""

BELIEVED = ("estimate", "order_estimate", "reserve_estimate")
"""Attributes of jobs, in seconds: what the user asked for, at which jobs are killed; and what is
believed instead, of a job that waits (its order, whether it ends before a reservation), and of one
that runs (when others can have its units). Where one of these two is missing, the first holds."""

SHORTEST_S = 10
"""Seconds that shorter jobs count as in the mixed correction, as in the bounded slowdown."""

PARENT, FULL = 2, 20
"""The mixed correction: as how many jobs the mean of the wider group counts, and how many jobs of
the group itself count at most.

Means over all jobs are better there than over the latest, and three groups better than five: on
KTH, SDSC-SP2, Theta 2022 and Mustang, where these numbers were chosen, by a few per cent.
"""

Seconds = NDArray[np.int64]


class Predicted(NamedTuple):
    """Predicted run times in seconds, at least 1, int64 ``(num_jobs,)``."""

    order: Seconds
    reserve: Seconds


RUN_TIMES: Registry[Callable[[RecordedJobs], Predicted]] = Registry("run-time correction")


@RUN_TIMES.register(USER)
def user(jobs: RecordedJobs) -> Predicted:
    """What users ask for."""
    return Predicted(jobs.estimate, jobs.estimate)


@RUN_TIMES.register("actual")
def actual(jobs: RecordedJobs) -> Predicted:
    """The run times themselves, which nobody knows beforehand: what there is to gain."""
    return Predicted(jobs.run, jobs.run)


@RUN_TIMES.register("recent")
def recent(jobs: RecordedJobs) -> Predicted:
    """The mean of the user's last two jobs that had ended, never above what the user asks for.

    Tsafrir, Etsion and Feitelson (TPDS 2007, section 3). Users with fewer such jobs are believed.
    """
    run, ends = jobs.run.astype(np.float64), ends_in_log(jobs)
    columns = histories(jobs.submit, ends, run, _users(jobs)).T
    last, last_but_one = (columns[COLUMNS.index(name)] for name in ("last_0", "last_1"))
    mean = np.ceil((last + last_but_one) / 2)
    # NaN: fewer than two of the user's jobs have ended.
    unknown = np.isnan(mean)
    shorter = np.minimum(np.where(unknown, 1, mean), jobs.estimate)
    seconds = np.maximum(np.where(unknown, jobs.estimate, shorter), 1).astype(np.int64)
    return Predicted(seconds, seconds)


@RUN_TIMES.register("mixed")
def mixed(jobs: RecordedJobs) -> Predicted:
    """Half way, by logarithms, between what users ask for and what their jobs took: for the order.

    Reservations go by what users ask for. So nobody waits longer for a job that was believed short
    than its user said, and a bound on waits holds. See `mixed_with_past`.
    """
    size = jobs.demand[:, 0]
    asked = (jobs.submit, ends_in_log(jobs), jobs.run, jobs.estimate)
    return Predicted(mixed_with_past(*asked, size, _users(jobs)), jobs.estimate)


def mixed_with_past(
    submit: Seconds, end: Seconds, run: Seconds, estimate: Seconds, size: Seconds, user: Seconds
) -> Seconds:
    """The geometric mean of estimates and of what they stood for in the past.

    That is a mean of ln(run / estimate), never above 0, over the jobs that had ended when a job was
    submitted: first all of them, then its user's, then those of its user, estimate and size. Each
    mean is drawn to the wider one, see `PARENT`.

    Args:
        submit: when each job was submitted, never falling, int64 ``(num_jobs,)``, as the others.
        end: when it ended, from when on its run time is known.
        run: run times.
        estimate: what users ask for, at least 1.
        size: processors.
        user: numbers of users.

    Returns:
        Seconds, 1 to the estimate.
    """
    asked = np.log(estimate)
    ratio = np.minimum(np.log(np.maximum(run, SHORTEST_S)) - asked, 0)
    expected = np.zeros(submit.size)
    everybody = np.zeros(submit.size, np.int64)
    for alike in (everybody, group([user]), group([user, estimate, size])):
        columns = histories(submit, end, ratio, alike).T
        ended, mean = (columns[COLUMNS.index(name)] for name in ("ended", "mean"))
        ended = np.minimum(ended, FULL)
        expected = (ended * np.nan_to_num(mean) + PARENT * expected) / (ended + PARENT)
    return np.clip(np.ceil(estimate * np.exp(expected / 2)).astype(np.int64), 1, estimate)


def corrected(jobs: RecordedJobs, name: str) -> RecordedJobs:
    """Jobs with the estimates of one of `RUN_TIMES`; the latest are remembered."""
    correction = RUN_TIMES.get(name)
    if name == USER:
        return jobs
    # Remembered by content: tasks of one log build their workloads again and again.
    columns = (jobs.submit, ends_in_log(jobs), jobs.run, jobs.estimate, jobs.demand, _users(jobs))
    digest = hashlib.blake2b(name.encode(), digest_size=16)
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    key = digest.digest()
    if key not in _LATEST:
        if len(_LATEST) >= 8:
            _LATEST.pop(next(iter(_LATEST)))  # the oldest
        _LATEST[key] = correction(jobs)
    order, reserve = _LATEST[key]
    return replace(jobs, predicted={"order_estimate": order, "reserve_estimate": reserve})


_LATEST: dict[bytes, Predicted] = {}


def _users(jobs: RecordedJobs) -> Seconds:
    return np.asarray(jobs.ids.get("user", np.zeros(jobs.num_jobs, np.int64)))
