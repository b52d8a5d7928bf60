"""FCFS with EASY backfilling in plain Python, as one writes it without a compiler.

A heap of ends, a sorted list of expected ends and a list of waiting jobs; nothing is looked at that
need not be, but for what only compiled code can afford to know.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush


def plain_fcfs_easy(
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
