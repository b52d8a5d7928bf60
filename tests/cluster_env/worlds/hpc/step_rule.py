"""What every step in this world keeps, beside what the checker of environments knows."""

from typing import Any

import numpy as np

from cluster_env.envs.checker import Moment, require


def check_step(
    core: Any, before: Moment, after: Moment, action: int, reward: float, where: str
) -> None:
    """An allowed job starts at once; waiting starts none, but on an empty machine the oldest.

    The free units are those that the schedule says.
    """
    started = after.num_placed - before.num_placed
    jobs = before.schedule
    runs = (jobs.start >= 0) & (jobs.start + jobs.duration > before.time)
    allowed = bool(before.mask[action]) and action < core.world.queue
    forced = not runs.any() and bool(before.mask[:-1].any())
    expected = 1 if allowed or forced else 0
    require(started == expected, f"{started} jobs start instead of {expected} {where}")
    new = after.schedule.start[: jobs.start.size] != jobs.start
    at_once = bool((after.schedule.start[: jobs.start.size][new] == before.time).all())
    require(at_once, f"a job does not start at the time of the decision {where}")
    _check_units(core, where)


def _check_units(core: Any, where: str) -> None:
    jobs, now = core.schedule(), int(core.simulator.time[0])
    if not core.simulator.active[0]:
        return
    runs = (jobs.start >= 0) & (jobs.start <= now) & (now < jobs.start + jobs.duration)
    layout = core.world.layout
    free = core.simulator.states[0, layout.jobs_at - layout.num_resources : layout.jobs_at]
    used = runs @ jobs.demand.astype(np.int64)
    require(
        np.array_equal(np.asarray(core.world.capacity) - used, free),
        f"the free units are not those of the schedule {where}",
    )
