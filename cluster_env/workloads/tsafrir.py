"""Estimates as users give them (Tsafrir et al., *Modeling User Runtime Estimates*, JSSPP 2005).

People ask for few round times: twenty of them, the *head*, make 89 % of all estimates, the largest
allowed time being the most popular. The rest, the *tail*, spreads over some further times, the more
of them the more jobs there are. The times follow from the number of jobs and the largest time
alone; chance decides how popular each is, and which job asks for which. All constants are those of
the authors' program. It chooses the ranks of the head among those that four logs have; here a time
of the head gets its mean rank there with an error, which leaves times and sizes as they are.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.errors import InputError

LEAST_MAXIMUM_S = 3600
"""The largest estimate is at least an hour, and at least the longest run time."""

_NUM_HEAD = 20
_HEAD_PERCENT = 89.0
_MINUTE, _HOUR = 60, 3600
_COMMON = tuple(_MINUTE * m for m in (5, 10, 15, 20, 30)) + tuple(
    _HOUR * h for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)
)
_STEPS = tuple(_HOUR * h for h in (200, 100, 50, 10, 5, 2, 1)) + tuple(
    _MINUTE * m for m in (20, 10, 5)
)
_BINS_AT = ((0, 0), (20, 10), (200, 20), (1000, 35), (10_000, 90), (70_000, 340), (250_000, 565))
_SHIFTS = (0, 30, -30, 20, -20, 10, -10)
_MEAN_RANK = {
    **dict(zip(_COMMON[:5], (3.4, 4.3, 5.7, 7.7, 6.7), strict=True)),
    **dict(zip(_COMMON[5:], (8.2, 9.8, 9.8, 9.0, 12.0, 12.1, 15.1, 12.1, 13.8, 16.0), strict=True)),
}
_OTHER_RANK, _RANK_ERROR = 15.5, 3.0


def num_bins(num_jobs: int) -> int:
    """How many different times so many jobs ask for; at least the twenty of the head."""
    for (n, bins), (next_n, next_bins) in pairwise(_BINS_AT):
        if num_jobs <= next_n:
            slope = (next_bins - bins) / (next_n - n)
            return max(bins + math.floor(slope * (num_jobs - n) + 0.5), _NUM_HEAD)
    return _BINS_AT[-1][1]


@lru_cache(maxsize=64)
def bin_times(num_jobs: int, largest: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The times that are asked for, in seconds: those of the head, the largest first, and the tail.

    Raises:
        InputError: if the largest time that may be asked for is below `LEAST_MAXIMUM_S`.
    """
    if largest < LEAST_MAXIMUM_S:
        raise InputError(
            f"Tsafrir's estimates need a maximum of {LEAST_MAXIMUM_S:,} s or more, not {largest:,}"
        )
    # The largest time, the common ones, and round ones until the head has its twenty.
    head = [largest, *(time for time in _COMMON if time < largest)]
    for step in _STEPS:
        for time in range(largest // step * step, 0, -step):
            if len(head) < _NUM_HEAD and time not in head:
                head.append(time)
    return tuple(head), _tail(num_bins(num_jobs), largest, set(head))


def _tail(count: int, largest: int, taken: set[int]) -> tuple[int, ...]:
    """Times along a hyperbola, denser where they are short; in whole minutes, if these are free."""
    curve = 1 + 12.1039 * count**-0.6026
    num_tail, times = count - len(taken), []
    for k in range(1, num_tail + 1):
        x = k / num_tail
        # Where the minute is taken, the nearest free half, third or sixth of one.
        minutes = math.floor((curve - 1) * x / (curve - x) * largest / _MINUTE + 0.5)
        for shift in _SHIFTS:
            time = minutes * _MINUTE + shift
            if time not in taken and 0 < time < largest:
                taken.add(time)
                times.append(time)
                break
    return tuple(times)


@lru_cache(maxsize=64)
def bin_sizes(num_jobs: int, num_head: int, num_tail: int) -> tuple[int, ...]:
    """How many jobs ask for the most popular time, the next one and so on; they sum to all jobs."""
    # Per cent of all jobs: an exponential over the head, a power law over the tail.
    rank = np.arange(2, num_head + 1)
    head = 14.0491 * np.exp(-0.177531 * rank) + 0.462513
    tail = np.arange(_NUM_HEAD + 1.0, _NUM_HEAD + num_tail + 1.0) ** -2.267
    tail *= (100 - _HEAD_PERCENT) / max(tail.sum(), 1e-9)
    percent = np.concatenate([[_HEAD_PERCENT - head.sum()], head, tail])
    share = percent / percent.sum()
    sizes = np.maximum(np.floor(share * num_jobs + 0.5), 1).astype(np.int64)
    return tuple(int(size) for size in _equalized(sizes, num_jobs))


def _equalized(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Sizes that sum to the total, changed by one each from the most popular on."""
    if total < sizes.size:
        return (np.arange(sizes.size) < total).astype(np.int64)
    place = 0
    while (missing := total - int(sizes.sum())) != 0:
        step = 1 if missing > 0 else -1
        if sizes[place] + step >= 1:
            sizes[place] += step
        place = (place + 1) % sizes.size
    return sizes


def draw_estimates(
    rng: np.random.Generator, run: NDArray[np.int64], largest: int = 0
) -> NDArray[np.int64]:
    """Draws an estimate for each job, none below its run time; both in seconds, ``(num_jobs,)``.

    The largest estimate allowed is at least the longest run time and `LEAST_MAXIMUM_S`.
    """
    head, tail = bin_times(run.size, max(largest, int(run.max(initial=0)), LEAST_MAXIMUM_S))
    sizes = np.asarray(bin_sizes(run.size, len(head), len(tail)))
    # Which time of the head is how popular: its mean rank with an error; the largest comes first.
    rank = np.array([0.0] + [_MEAN_RANK.get(time, _OTHER_RANK) for time in head[1:]])
    rank[1:] += _RANK_ERROR * rng.standard_normal(rank.size - 1).clip(-2, 2)
    rank[0] = -np.inf
    popular = [*np.asarray(head)[np.argsort(rank)], *rng.permutation(tail).astype(np.int64)]
    # Each job gets one of these estimates, none that it would outlive.
    longest_first = np.argsort(-run, kind="stable")
    estimates = np.sort(np.repeat(np.asarray(popular, np.int64), sizes))[::-1].copy()
    _assign(run[longest_first], estimates, rng.random(run.size))
    of_jobs = np.empty_like(run)
    of_jobs[longest_first] = estimates
    return of_jobs


@njit(cache=True)
def _assign(
    run: NDArray[np.int64], estimates: NDArray[np.int64], uniforms: NDArray[np.float64]
) -> None:
    """Gives each job, the longest first, any of the estimates left that it does not outlive.

    Both are sorted from the largest down. A job's estimate is swapped to the job's place, so that
    the estimates behind it are those that are left; they need not be sorted then, but all that
    a longer job could have had, this one can have, too. If none is left, the job gets the largest.
    """
    long_enough, largest = 0, estimates[0] if run.size else 0
    for job in range(run.size):
        # The estimates up to `long_enough` suffice for the job; those in front of it are taken.
        while long_enough < run.size and estimates[long_enough] >= run[job]:
            long_enough += 1
        if long_enough <= job:
            estimates[job], long_enough = largest, job + 1
            continue
        # Any of those that are left, by a swap, so that nothing has to move up.
        chosen = job + int(uniforms[job] * (long_enough - job))
        estimates[job], estimates[chosen] = estimates[chosen], estimates[job]
