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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.workloads.histories import COLUMNS, ends_in_log, group, histories
from cluster_env.workloads.recorded import RecordedJobs

USER = "user"
"""The correction that leaves everything as the user asked for it."""

ORDER_QUANTILE, RESERVE_QUANTILE = 0.7, 0.95
"""Quantiles of the learned correction; see `learned`.

Of pairs between 0.5 and 0.95 they had the best mean log gain of the bounded slowdown over users'
estimates on the first 40 % of the jobs of Theta, as it is and at 0.6 of its gaps, and of LCG, under
SJF and SAF with EASY, each log stretched by nine factors within 3 % of 1. Others come within a few
per cent, and such a mean varies by ten per cent with the least change of a log.
"""

FIRST, GROWTH, MOST = 100, 1.15, 20_000
"""The learned correction begins when so many jobs have ended; it is fitted anew whenever their
number has grown by that factor, to the latest of them up to so many."""

_TREES: Mapping[str, Any] = MappingProxyType(
    {
        "loss": "quantile",
        "max_iter": 60,
        "learning_rate": 0.08,
        "max_leaf_nodes": 12,
        "min_samples_leaf": 15,
        "early_stopping": False,
        "random_state": 0,
    }
)

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


@RUN_TIMES.register("learned")
def learned(jobs: RecordedJobs) -> Predicted:
    """Quantiles of run time over estimate, by gradient boosting with the quantile loss.

    They are given what the job asks for, the hour, and what was known of jobs of its user, group,
    limit and size (`histories`). Every `GROWTH`, trees are fitted to jobs that had ended, and used
    for those that are submitted from then on. Until `FIRST` have ended, users are believed.

    Two quantiles, because the two mistakes are not alike. A long job believed short goes first and
    outlives its reservation; a short one believed long waits and is not backfilled.

    Raises:
        InputError: if scikit-learn is not installed.
    """
    try:
        # Both must be there before threads are limited: it counts for what is loaded by then.
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise InputError(
            "the learned correction needs scikit-learn, which is not installed"
        ) from None
    columns, ratio = features(jobs), np.log(jobs.run / jobs.estimate)
    # A logarithm of 0, before the first fit, is the estimate itself.
    order, reserve = (np.zeros(jobs.num_jobs) for _ in range(2))
    # One thread: a fit is so short that several mostly wait for each other, at full load.
    with threadpool_limits(1, user_api="openmp"):
        for rows, coming in _fits(jobs.submit, ends_in_log(jobs)):
            # scikit-learn cannot bin a column without a value, as where no two jobs are alike.
            known = ~np.isnan(columns[rows]).all(axis=0)
            for quantile, out in ((ORDER_QUANTILE, order), (RESERVE_QUANTILE, reserve)):
                trees = HistGradientBoostingRegressor(quantile=quantile, **_TREES)
                trees.fit(columns[rows][:, known], ratio[rows])
                # Never above the estimate, which is the job's limit.
                out[coming] = np.minimum(trees.predict(columns[coming][:, known]), 0)
    both = (order, np.maximum(order, reserve))  # fitted one by one, quantiles may cross
    seconds = (np.ceil(jobs.estimate * np.exp(log)).astype(np.int64) for log in both)
    return Predicted(*(np.clip(length, 1, jobs.estimate) for length in seconds))


def corrected(jobs: RecordedJobs, name: str) -> RecordedJobs:
    """Jobs with the estimates of one of `RUN_TIMES`; the latest are remembered."""
    correction = RUN_TIMES.get(name)
    if name == USER:
        return jobs
    # Remembered by content: tasks of one log build their workloads again and again, and a fit of
    # the learned correction takes seconds.
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


def features(jobs: RecordedJobs) -> NDArray[np.float64]:
    """What the learned correction is given of each job, float64 ``(num_jobs, num_features)``.

    ln of the estimate and of the processors, the hour of the log's day, and the columns of
    `histories` of ln(run / estimate) for the job's user; its group; its user, size and limit; its
    user and limit; everybody; and its limit. What the log does not say counts as the same for all.
    """
    size, limit, owner = jobs.demand[:, 0], jobs.estimate, _users(jobs)
    everybody = np.zeros(jobs.num_jobs, np.int64)
    account = np.asarray(jobs.ids.get("group", everybody))
    # From the closest to the widest circle of jobs that may be alike.
    groups = (owner, account, group([owner, size, limit]), group([owner, limit]), everybody)
    ratio, end = np.log(jobs.run / limit), ends_in_log(jobs)
    past = [histories(jobs.submit, end, ratio, kind) for kind in (*groups, group([limit]))]
    own = np.stack([np.log(limit), np.log(size), jobs.submit // 3600 % 24], axis=1)
    return np.concatenate([own, *past], axis=1)


_LATEST: dict[bytes, Predicted] = {}


def _users(jobs: RecordedJobs) -> Seconds:
    return np.asarray(jobs.ids.get("user", np.zeros(jobs.num_jobs, np.int64)))


def _fits(submit: Seconds, end: Seconds) -> Iterator[tuple[NDArray[np.int64], slice]]:
    """For each fit: rows of the jobs that have ended by then, and the jobs that it is used for."""
    ended = np.searchsorted(np.sort(end), submit, side="right")  # at each submission
    begins, enough = [], float(FIRST)
    while (job := int(np.searchsorted(ended, enough))) < submit.size:
        begins.append(job)
        # By a share, so that a log is fitted some tens of times, however long it is.
        enough = max(ended[job] * GROWTH, ended[job] + FIRST / 4)
    by_end = np.argsort(end, kind="stable")
    for begin, stop in zip(begins, [*begins[1:], submit.size], strict=True):
        yield by_end[: ended[begin]][-MOST:], slice(begin, stop)
