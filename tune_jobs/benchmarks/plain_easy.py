"""FCFS with EASY backfilling in plain Python, as the simulators of published studies are written.

Jobs are objects. At each event what runs, what is free and the reservation are worked out anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class LoopJob:
    """A job on so many processors; times in seconds."""

    arrival: int
    run: int
    estimate: int
    size: int
    start: int = -1  # as long as it waits


def plain_easy(jobs: Sequence[LoopJob], processors: int) -> None:
    """Schedules jobs, given in the order of their arrival, and writes their starts."""
    coming = list(reversed(jobs))
    waiting: list[LoopJob] = []
    running: list[LoopJob] = []
    while coming or running:
        times = [job.start + job.run for job in running]
        now = min([*times, coming[-1].arrival] if coming else times)
        running = [job for job in running if job.start + job.run > now]
        while coming and coming[-1].arrival == now:
            waiting.append(coming.pop())
        for job in starting(now, waiting, running, processors):
            job.start = now
            running.append(job)
        waiting = [job for job in waiting if job.start < 0]


def starting(
    now: int, waiting: list[LoopJob], running: list[LoopJob], processors: int
) -> list[LoopJob]:
    """The jobs that start now."""
    free = processors - sum(job.size for job in running)
    begun: list[LoopJob] = []
    for job in waiting:
        if job.size > free:
            break
        begun.append(job)
        free -= job.size
    if len(begun) == len(waiting):
        return begun
    head = waiting[len(begun)]
    # When the head is expected to fit, and what is spare beside it then.
    ends = [(max(job.start + job.estimate, now + 1), job.size) for job in running]
    ends += [(now + job.estimate, job.size) for job in begun]
    shadow, spare = now, free
    for end, size in sorted(ends):
        if spare >= head.size and end > shadow:
            break
        shadow, spare = end, spare + size
    spare -= head.size
    # Jobs behind it start if they end before, or use what is spare.
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
