"""FCFS with EASY backfilling in plain Python, twice, with the same schedule.

`plain_easy` is what one writes for a study: jobs are objects, and at each event the queue is sorted
by the rule's key, and what runs, what is free and the reservation are worked out anew, so that any
order can be tried. So work the simulators of published studies that are written in Python.

`lean_fcfs_easy` is written for speed and for this one rule: a heap of ends, a sorted list of
expected ends and a list of waiting jobs; nothing is looked at that need not be, but for what only
compiled code can afford to know.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any


@dataclass
class PlainJob:
    """A job of `plain_easy`; times in seconds.

    Attributes:
        number: among all jobs, by arrival.
        arrival: when it arrives.
        run: how long it will run.
        estimate: how long its user says.
        size: processors.
        start: when it started; -1 as long as it waits.
    """

    number: int
    arrival: int
    run: int
    estimate: int
    size: int
    start: int = -1


def plain_easy(jobs: Sequence[PlainJob], processors: int, key: Callable[[PlainJob], Any]) -> None:
    """Schedules jobs under EASY backfilling, and writes their starts.

    Args:
        jobs: by arrival.
        processors: of the machine.
        key: what the queue is sorted by.
    """
    coming, now = list(jobs), 0
    waiting: list[PlainJob] = []
    running: list[PlainJob] = []
    coming.reverse()
    while coming or running:
        times = [job.start + job.run for job in running]
        now = min([*times, coming[-1].arrival] if coming else times)
        running = [job for job in running if job.start + job.run > now]
        while coming and coming[-1].arrival == now:
            waiting.append(coming.pop())
        waiting.sort(key=key)
        for job in _easy(now, waiting, running, processors):
            job.start = now
            running.append(job)
        waiting = [job for job in waiting if job.start < 0]


def _easy(
    now: int, waiting: list[PlainJob], running: list[PlainJob], processors: int
) -> list[PlainJob]:
    """The jobs that start now."""
    free = processors - sum(job.size for job in running)
    begun: list[PlainJob] = []
    for job in waiting:
        if job.size > free:
            break
        begun.append(job)
        free -= job.size
    if len(begun) == len(waiting):
        return begun
    head = waiting[len(begun)]
    ends = [(max(job.start + job.estimate, now + 1), job.size) for job in running]
    ends += [(now + job.estimate, job.size) for job in begun]
    shadow, spare = now, free
    for end, size in sorted(ends):
        if spare >= head.size and end > shadow:
            break
        shadow, spare = end, spare + size
    spare -= head.size
    for job in waiting[len(begun) + 1 :]:
        if job.size > free:
            continue
        if now + job.estimate > shadow:
            if job.size > spare:
                continue
            spare -= job.size
        begun.append(job)
        free -= job.size
    return begun


def lean_fcfs_easy(
    arrival: Sequence[int],
    run: Sequence[int],
    estimate: Sequence[int],
    size: Sequence[int],
    processors: int,
) -> list[int]:
    """Start of each job; the arguments are lists of whole numbers, a job in each place.

    Args:
        arrival: seconds, rising.
        run: seconds that the job will run.
        estimate: seconds that its user says.
        size: processors.
        processors: of the machine.
    """
    start = [-1] * len(run)
    waiting: list[int] = []
    ends: list[tuple[int, int]] = []
    expected: list[tuple[int, int]] = []
    free, coming = processors, 0
    while coming < len(run) or ends:
        now = ends[0][0] if ends else arrival[coming]
        if coming < len(run) and arrival[coming] < now:
            now = arrival[coming]
        while ends and ends[0][0] == now:
            job = heappop(ends)[1]
            del expected[bisect_left(expected, (start[job] + estimate[job], job))]
            free += size[job]
        while coming < len(run) and arrival[coming] == now:
            waiting.append(coming)
            coming += 1
        begun = _choose(now, waiting, expected, estimate, size, free)
        for job in begun:
            start[job] = now
            free -= size[job]
            heappush(ends, (now + run[job], job))
            insort(expected, (now + estimate[job], job))
    return start


def _choose(
    now: int,
    waiting: list[int],
    expected: list[tuple[int, int]],
    estimate: Sequence[int],
    size: Sequence[int],
    free: int,
) -> list[int]:
    """Takes the jobs that start now out of those that wait."""
    count = 0
    while count < len(waiting) and size[waiting[count]] <= free:
        free -= size[waiting[count]]
        count += 1
    begun = waiting[:count]
    del waiting[:count]
    if not waiting or not free:
        return begun
    running = sorted([*expected, *((now + estimate[job], job) for job in begun)])
    shadow, spare = _reserve(now, running, size, free, size[waiting[0]])
    passed = []
    for job in waiting:
        width = size[job]
        if width > free:
            continue
        if now + estimate[job] > shadow:
            if width > spare:
                continue
            spare -= width
        free -= width
        passed.append(job)
        if not free:
            break
    for job in passed:
        waiting.remove(job)
    return begun + passed


def _reserve(
    now: int, running: list[tuple[int, int]], size: Sequence[int], free: int, need: int
) -> tuple[int, int]:
    """When the first job is expected to fit, and what is free beside it then."""
    place = 0
    while free < need:
        shadow = max(running[place][0], now + 1)
        free += size[running[place][1]]
        place += 1
    while place < len(running) and running[place][0] <= shadow:
        free += size[running[place][1]]
        place += 1
    return shadow, free - need
