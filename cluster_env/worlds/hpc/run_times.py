"""Predicted run times: what a scheduler believes of a job, in place of what its user asked for.

Users ask for a multiple of what their jobs take, each in a way of their own. A model predicts the
run time of a job when the job enters the queue. It knows what has ended by then in the schedule
that is being played, and nothing else, of three groups, each within the one before: all jobs; those
of the same user; those of this user with the same limit and as many processors. Jobs are killed at
their limits, whatever was predicted.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch
from cluster_env.core.compiled import njit_inlined
from cluster_env.core.jobs import JobSet

RUN_TIMES = ("user", "actual", "recent", "mixed")
"""Models, by the place that is their number.

* ``user``: what users ask for.
* ``actual``: the run times themselves, which nobody knows beforehand: what there is to gain.
* ``recent``: the mean of the user's last two jobs that have ended, never above what the user asks
  for (Tsafrir, Etsion and Feitelson, TPDS 2007, section 3). Users with fewer such jobs are
  believed.
* ``mixed``: half way, by logarithms, between what users ask for and what that stood for in the
  past, for a job that waits. Reservations go by what users ask for, so that nobody waits longer for
  a job that was believed short than its user said, and a bound on waits holds.
"""

USER, ACTUAL, RECENT, MIXED = range(len(RUN_TIMES))

LEARNED = (RECENT, MIXED)
"""Models that learn from the jobs that end."""

KNOWN = ("ended", "mean", "last", "last_but_one")
"""What is known of a group: how many of its jobs have ended; the mean of ln(run time / limit), at
most 0; run times in seconds of those that ended last."""

ENDED, MEAN, LAST, LAST_BUT_ONE = range(len(KNOWN))

NUM_GROUPS = 3

SHORTEST_S = 10
"""Seconds that shorter jobs count as in means, as in the bounded slowdown."""

PARENT, FULL = 2, 20
"""In ``mixed``: as how many jobs the mean of the wider group counts, and how many jobs of the group
itself count at most.

Means over all jobs are better there than over the latest, and three groups better than five: on
KTH, SDSC-SP2, Theta 2022 and Mustang, where these numbers were chosen, by a few per cent.
"""


def learns(jobset: JobSet) -> bool:
    """Whether anything can be learned: there are estimates, and nobody has corrected them yet."""
    known = jobset.attributes
    corrected = "order_estimate" in known or "reserve_estimate" in known
    return "estimate" in known and not corrected


def groups_of(batch: Batch) -> NDArray[np.int32]:
    """The groups of each job, int32 ``(num_jobs, NUM_GROUPS)``; see the head of this module.

    A group has the number of its first job, as counted in the jobset, so that it is the same
    whatever jobs come later.
    """
    parts = []
    for jobset in batch.jobsets:
        everybody = np.zeros(jobset.num_jobs, np.int64)
        user = jobset.attributes.get("user", everybody)
        limit = jobset.attributes.get("estimate", jobset.duration)
        alike = [everybody, _first_alike(user)]
        for column in (limit, jobset.demand[:, 0]):
            both = _first_alike(column) + jobset.num_jobs * alike[-1]
            alike[2:] = [_first_alike(both)]
        parts.append(np.stack(alike, axis=1))
    return np.concatenate(parts).astype(np.int32)


def _first_alike(values: NDArray[Any]) -> NDArray[np.int64]:
    """The place of the first of the same value, int64 ``(num_jobs,)``."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    return first[number.reshape(-1)].astype(np.int64)


@njit_inlined
def predict(
    model: int, known: NDArray[np.float64], groups: NDArray[np.int32], limit: int
) -> tuple[float, float]:
    """Seconds for which a job is believed to run while it waits, and then while it runs.

    Whole numbers, 1 to its limit. ``known`` has a row for each group,
    ``(num_jobs, NUM_GROUPS, len(KNOWN))``, and ``groups`` the numbers of the job's own.
    """
    asked = float(limit)
    if model == RECENT:
        user, seconds = known[groups[1], 1], asked
        if user[ENDED] >= 2:
            seconds = float(math.ceil((user[LAST] + user[LAST_BUT_ONE]) / 2.0))
        seconds = min(max(seconds, 1.0), asked)
        return seconds, seconds
    # From the widest group to the narrowest; each mean is drawn to the one before.
    expected = 0.0
    for k in range(NUM_GROUPS):
        group = known[groups[k], k]
        ended = min(group[ENDED], float(FULL))
        expected = (ended * group[MEAN] + PARENT * expected) / (ended + PARENT)
    return min(max(float(math.ceil(asked * math.exp(expected / 2.0))), 1.0), asked), asked


@njit_inlined
def learn(known: NDArray[np.float64], groups: NDArray[np.int32], run: int, limit: int) -> None:
    """Adds a job that has ended to what is known of its groups; see `predict`."""
    ratio = min(math.log(float(max(run, SHORTEST_S))) - math.log(float(limit)), 0.0)
    for k in range(NUM_GROUPS):
        group = known[groups[k], k]
        group[ENDED] += 1.0
        # The mean by its increments, so that no sum of all values has to be kept.
        group[MEAN] += (ratio - group[MEAN]) / group[ENDED]
        group[LAST_BUT_ONE], group[LAST] = group[LAST], float(run)
