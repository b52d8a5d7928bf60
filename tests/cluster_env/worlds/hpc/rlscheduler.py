"""RLScheduler's event loop and orders, to repeat what its own code found (Zhang et al., SC 2020).

It differs from ordinary practice: a job once chosen blocks the others until it fits and is never
chosen anew; one event is one arrival or one completion, also where several happen at an instant;
backfilling has no rule for spare processors; and wfp and uni use a waiting time that is always
-1 minus the time of submission, so that they prefer long jobs.
"""

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet

Numbers = NDArray[np.int64]

SCORES = ("fcfs", "sjf", "wfp", "uni", "f1", "f2", "f3", "f4", "smallest")
"""Orders under its own names."""


def peer_starts(jobset: JobSet, processors: int, name: str, backfilling: bool) -> Numbers:
    """Start of each job of a jobset that asks for processors alone."""
    estimate, size = (
        np.asarray(column, np.int64)
        for column in (jobset.attributes["estimate"], jobset.demand[:, 0])
    )
    score = peer_scores(name, estimate, size, jobset.attributes["submit"])
    arrival, duration = jobset.arrival.astype(np.int64), jobset.duration.astype(np.int64)
    order = np.lexsort((score, arrival))
    start = np.full(arrival.size, -1, np.int64)
    _play(arrival, duration, estimate, size, processors, score, order, backfilling, start)
    return start


def peer_scores(name: str, estimate: Numbers, size: Numbers, submit: Numbers) -> NDArray:
    """Scores as its code has them, lower first; times in seconds of the log's own clock."""
    r, n, s = (np.asarray(column, np.float64) for column in (estimate, size, submit))
    later = np.log10(np.where(s > 0, s, np.nan))
    later[np.isnan(later)] = -np.inf
    scores: dict[str, Callable[[], NDArray]] = {
        "fcfs": lambda: s,
        "sjf": lambda: r,
        "wfp": lambda: -np.float_power((-1 - s) / r, 3) * n,
        "uni": lambda: -((-1 - s) + 1e-15) / (np.log2(n + 1e-15) * r),
        "f1": lambda: np.log10(r) * n + 870 * later,
        "f2": lambda: np.sqrt(r) * n + 25_600 * later,
        "f3": lambda: r * n + 6_860_000 * later,
        "f4": lambda: r * np.sqrt(n) + 530_000 * later,
        "smallest": lambda: n,
    }
    return np.asarray(scores[name](), np.float64)


@numba.njit
def _play(arrival, duration, estimate, size, processors, score, order, backfilling, start):
    # Of jobs that end at the same time, that goes first which stands first in its list of running
    # jobs; the list is sorted now by true ends, now by expected ones, and equals stay as they are.
    num_jobs, free = arrival.size, processors
    end, expected = np.empty(num_jobs, np.int64), np.empty(num_jobs, np.int64)
    running, waiting = np.empty(num_jobs, np.int64), np.zeros(num_jobs, np.bool_)
    # The first job waits on an empty machine.
    waiting[0] = True
    now, coming, num_running, lowest = arrival[0], 1, 0, 0
    while True:
        while lowest < coming and not waiting[lowest]:
            lowest += 1  # no job before it waits
        # Nobody waits: time goes on to the next arrival.
        if lowest == coming:
            if coming == num_jobs:
                break
            while num_running and end[running[0]] < arrival[coming]:
                free += size[running[0]]
                num_running = _drop_first(running, num_running)
            now = arrival[coming]
            waiting[coming] = True
            coming += 1
            continue
        # The first of the order is chosen, and blocks the others until it fits.
        pick = lowest
        for job in range(lowest + 1, coming):
            if waiting[job] and score[job] < score[pick]:
                pick = job
        waiting[pick] = False
        # When it would fit, if those that run took as long as they asked for.
        known, reservation = coming, now
        if backfilling and size[pick] > free:
            _sort(running, num_running, expected)
            spare, place = free, 0
            while spare < size[pick]:
                spare += size[running[place]]
                reservation = expected[running[place]]
                place += 1
        while size[pick] > free:
            # Those that were known when the choice was made come first, and then the others.
            for place in range(num_jobs + coming - known if backfilling else 0):
                job = order[place] if place < num_jobs else known + place - num_jobs
                if place < num_jobs and job >= known:
                    continue
                if waiting[job] and size[job] <= free and now + estimate[job] < reservation:
                    waiting[job] = False
                    start[job], end[job] = now, now + duration[job]
                    expected[job] = now + estimate[job]
                    running[num_running] = job
                    num_running += 1
                    free -= size[job]
            # One event: an arrival, or one completion if that is earlier.
            _sort(running, num_running, end)
            if coming < num_jobs and arrival[coming] <= end[running[0]]:
                now = arrival[coming]
                waiting[coming] = True
                coming += 1
            else:
                now = end[running[0]]
                free += size[running[0]]
                num_running = _drop_first(running, num_running)
        start[pick], end[pick] = now, now + duration[pick]
        expected[pick] = now + estimate[pick]
        running[num_running] = pick
        num_running += 1
        free -= size[pick]
        _sort(running, num_running, end)


@numba.njit
def _drop_first(running, num_running):
    for place in range(num_running - 1):
        running[place] = running[place + 1]
    return num_running - 1


@numba.njit
def _sort(running, size, key):
    """Sorts a list of jobs by their keys; equals stay in order."""
    for place in range(1, size):
        job, hole = running[place], place
        while hole > 0 and key[running[hole - 1]] > key[job]:
            running[hole] = running[hole - 1]
            hole -= 1
        running[hole] = job
