"""Windows of recorded jobs: by count or by time, from the log as it is or from blocks of it."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.workloads.recorded import RecordedJobs

MEAN_RUNS = 20
"""A window as long as so many mean run times is long enough to tell policies apart; in a shorter
one it pays to keep jobs waiting, because nobody counts who comes later."""

FEWEST_JOBS = 256
"""Jobs that are submitted in such a window, at least and on average."""

_NUMBERED = ("job_id", "after", "array")
"""Attributes of jobs at a site that are numbers of jobs or of arrays of jobs."""

_TRIES = 64
_FEWEST_OCCUPIED = 0.05


def natural_length(jobs: RecordedJobs) -> int:
    """Seconds of a window that tells policies apart: see `MEAN_RUNS` and `FEWEST_JOBS`."""
    by_runs = MEAN_RUNS * float(jobs.run.mean())
    by_jobs = FEWEST_JOBS * jobs.span / jobs.num_jobs
    return math.ceil(max(by_runs, by_jobs))


def filling_time(jobs: RecordedJobs) -> int:
    """Seconds that an empty machine needs at least to fill as it usually is.

    That is the mean run time of what runs, in which jobs count with their processors and run times:
    long jobs are few, but most of what runs.
    """
    work = (jobs.run * jobs.demand[:, 0]).astype(np.float64)
    return math.ceil(float((work * jobs.run).sum() / work.sum()))


def window_by_count(
    jobs: RecordedJobs, count: int, offset: int, rng: np.random.Generator
) -> JobSet:
    """Consecutive jobs, all if there are fewer, from the offset on.

    Below 0, the offset is any, all windows being equally likely.
    """
    count = min(count, jobs.num_jobs)
    first = int(rng.integers(jobs.num_jobs - count, endpoint=True)) if offset < 0 else offset
    return jobs.jobset(slice(first, first + count))


def window_by_time(
    jobs: RecordedJobs,
    length: int,
    offset: int,
    rng: np.random.Generator,
    bounds: tuple[int, int] | None = None,
) -> JobSet:
    """All jobs that are submitted in a stretch of so many seconds; at least one, without `bounds`.

    The offset counts seconds from the first submission; below 0 it is any, all moments being
    equally likely where the log is not empty for as long as the stretch. Bounds are first second
    and length of a part of the log's time: a stretch may lie anywhere in it, also where no job is
    submitted.

    Raises:
        InputError: if there is no job at an offset without bounds.
    """
    begins, span = bounds or (int(jobs.submit[0]), jobs.span)
    length = min(length, span)
    if offset >= 0:
        window = _between(jobs, begins + offset, length)
        if not window.num_jobs and bounds is None:
            raise InputError(
                f"no job of {jobs.path} was submitted in the {length:,} seconds from offset "
                f"{offset:,} on; take another offset or a longer window"
            )
        return window
    last = begins + span - length
    for _ in range(_TRIES):
        begin = int(rng.integers(begins, last, endpoint=True))
        first, stop = np.searchsorted(jobs.submit, (begin, begin + length))
        if stop > first or bounds is not None:
            return _between(jobs, begin, length)
    # The log is nearly empty: take a window around any of its jobs.
    job = int(rng.integers(jobs.num_jobs))
    return _between(jobs, min(int(jobs.submit[job]), last), length)


def _between(jobs: RecordedJobs, begin: int, length: int) -> JobSet:
    first, stop = np.searchsorted(jobs.submit, (begin, begin + length))
    return jobs.jobset(slice(int(first), int(stop)), begin=begin, window=length)


def resampled(
    jobs: RecordedJobs, block: int, num_jobs: int, length: int, rng: np.random.Generator
) -> RecordedJobs:
    """A log made of blocks of another, drawn with replacement and put one behind the other.

    Blocks begin at multiples of their length by the log's clock, so that days stay days and weeks
    weeks, and jobs keep what they have in common with their neighbors (the block bootstrap of
    Künsch, Annals of Statistics 1989; of job logs, Zakay and Feitelson, 2013). Blocks at the ends
    that the log covers in part are left out where there are whole ones, and empty blocks where
    hardly any other is left. There is at least one job. All lengths are in seconds; the last block
    may bring more than the jobs or the length that are wanted, 0 for either if it is not.
    """
    # Whole blocks of the log; where it is shorter than that, those that it covers in part.
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    blocks = np.arange(-(-first // block), (last + 1) // block)
    edges = np.searchsorted(jobs.submit, [blocks * block, (blocks + 1) * block])
    if not (edges[1] > edges[0]).any():
        blocks = np.arange(first // block, last // block + 1)
        edges = np.searchsorted(jobs.submit, [blocks * block, (blocks + 1) * block])
    # In a log that is nearly empty, drawing empty blocks would hardly ever end.
    if (occupied := edges[1] > edges[0]).mean() < _FEWEST_OCCUPIED:
        blocks, edges = blocks[occupied], edges[:, occupied]
    rows: list[NDArray[np.int64]] = []
    submit: list[NDArray[np.int64]] = []
    count = drawn = 0
    while count < max(num_jobs, 1) or drawn * block < length:
        k = int(rng.integers(blocks.size))
        # Its jobs, at the time of the day that they had, behind the blocks before.
        chosen = np.arange(edges[0][k], edges[1][k])
        submit.append(jobs.submit[chosen] + (drawn - int(blocks[k])) * block)
        rows.append(chosen)
        count, drawn = count + chosen.size, drawn + 1
    drawn_jobs = jobs.select(np.concatenate(rows), submit=np.concatenate(submit))
    return _renumbered(drawn_jobs, np.repeat(np.arange(drawn), [chosen.size for chosen in rows]))


def _renumbered(jobs: RecordedJobs, draw: NDArray[np.int64]) -> RecordedJobs:
    """Jobs of a site whose numbers, and those of their arrays, differ from draw to draw."""
    if "job_id" not in jobs.attributes:
        return jobs
    numbers = {name: jobs.attributes[name] for name in _NUMBERED if name in jobs.attributes}
    step = 1 + max(int(column.max(initial=0)) for column in numbers.values())
    for name, column in numbers.items():
        shift = draw.reshape(-1, *[1] * (column.ndim - 1)) * step
        numbers[name] = np.where(column >= 0, column + shift, column)
    return replace(jobs, attributes={**jobs.attributes, **numbers})
