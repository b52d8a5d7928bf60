"""How people say the bound on waits (`HPC.max_wait`): a time, or a multiple of what a log has."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cluster_env.core.durations import seconds_of
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.workloads.log import LogWorkload
from cluster_env.worlds.hpc.rules import Rule
from cluster_env.worlds.hpc.run_times import RUN_TIMES, USER

REFERENCE = Rule("fcfs", "easy")
"""Under which the waits of a log are measured: first come, first served lets nobody starve."""


def read_bound(text: Any, task_of: Callable[[], Task]) -> int:
    """Seconds of a bound: a number of them, ``5d``, ``0`` for none, or ``x2``.

    The last is twice the longest wait under `REFERENCE` in the earlier part of a log: before the
    held-out jobs, or the first half where all is replayed.

    Args:
        text: what was said.
        task_of: makes the task, without a bound.

    Raises:
        InputError: if it is none of these, or the jobs are of no log.
    """
    if not isinstance(text, str):
        return int(text)
    if not text.startswith("x"):
        return seconds_of(text)
    try:
        factor = float(text[1:])
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e6:
        raise InputError(f"a multiple of a wait is written like x2, not '{shortened(text)}'")
    task = task_of()
    if not isinstance(task.workload, LogWorkload):
        raise InputError(
            f"{text} is a multiple of the longest wait in a log, and these jobs come from none; "
            f"give a time, such as 5d"
        )
    log = task.workload
    earlier = log.recorded.between(0.0, 0.5) if log.whole else log.before_held_out().recorded
    return bound_of(factor, task.world, earlier.jobset())


def bound_of(factor: float, world: Any, jobset: JobSet) -> int:
    """Seconds of a multiple of the longest wait that some jobs have under `REFERENCE`."""
    schedule = under_reference(world, jobset)
    started = schedule.start >= 0
    longest = int((schedule.start - schedule.arrival)[started].max(initial=0))
    return max(1, round(factor * longest))


def under_reference(world: Any, jobset: JobSet) -> Schedule:
    """What becomes of jobs under `REFERENCE`, without a bound, by what users ask for."""
    simulator = replace(world, max_wait=0, run_times=RUN_TIMES[USER]).simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    simulator.play(REFERENCE)
    schedule: Schedule = simulator.schedule()
    return schedule
