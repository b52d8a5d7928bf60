"""What every step in this world keeps, beside what the checker of environments knows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.envs.checker import Moment, require
from cluster_env.worlds.accrual import Accrual


def check_step(
    core: Any, before: Moment, after: Moment, action: int, reward: float, where: str
) -> None:
    """Time stands still only where a candidate was there to be chosen.

    Jobs hold no more processors than the machines have, and those of one that are idle are what the
    state shows.
    """
    goes_on = not (after.terminated or after.truncated)
    if not goes_on and core.world.machines == 1 and not core.world.drop_expired:
        check_priorities(after.schedule, core.world)
    offered = bool(before.mask[:-1].any())
    require(after.time > before.time or offered or not goes_on, f"time stands still {where}")
    pieces = core.schedule().pieces
    if not goes_on or pieces is None:
        return
    until = pieces.end == after.time
    used = int(pieces.units[until, 0].sum())
    idle = int(core.simulator.states[0, 3])
    require(used <= core.world.capacity, f"more processors are used than there are {where}")
    require(0 <= idle <= core.world.processors, f"{idle} processors are idle {where}")


def complete_until(world: Accrual) -> int | None:
    """Clock up to which an episode that has ended has finished all jobs; None if it may lose some.

    One that is cut ends at max_time itself.
    """
    return None if world.drop_expired else world.max_time - 1


def check_pool(schedule: Schedule, jobsets: Sequence[JobSet], world: Accrual) -> None:
    """No machine holds too much, and all work is done."""
    capacity = np.full((world.machines, 1), world.processors, np.int32)
    nodes = capacity if world.machines > 1 else None
    check_schedule(schedule, jobsets, complete_until(world), nodes)


def check_priorities(schedule: Schedule, world: Accrual) -> None:
    """No job waits where it fits beside the jobs of its own and of higher projects.

    For one machine that jobs wait for however late they are. The last step of a squeezed job may
    show fewer processors than it holds, and is not looked at.
    """
    until, pieces = int(schedule.end[0]), schedule.pieces
    used = np.zeros((schedule.job.size, until), np.int64)
    for job, begin, end, (units,) in zip(
        pieces.job, pieces.begin, pieces.end, pieces.units, strict=True
    ):
        used[job, begin:end] = units
    size = schedule.demand[:, 0]
    finish = np.where(schedule.finished, schedule.finish, until)
    for now in range(until):
        there = (schedule.arrival <= now) & (now < finish)
        last = schedule.finished & (schedule.finish == now + 1)
        if (last & (used[:, now] < size)).any():
            continue
        for job in np.flatnonzero(there & (used[:, now] == 0)):
            project = schedule.job_class[job] if world.projects > 1 else 0
            seen = schedule.job_class >= project
            room = world.processors - used[seen, now].sum()
            require(size[job] > room, f"job {job} waits at {now}, though it fits")
