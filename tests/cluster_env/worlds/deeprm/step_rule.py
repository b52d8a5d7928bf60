"""What every step in DeepRM's world keeps, beside what the checker of environments knows."""

from typing import Any

import numpy as np

from cluster_env.core.schedule import Schedule
from cluster_env.envs.checker import Moment, require


def check_step(
    core: Any, before: Moment, after: Moment, action: int, reward: float, where: str
) -> None:
    """An allowed slot books one job and takes no time; void lets one step pass.

    Under the mask ``placeable`` the other way round, too; the masks but ``live`` never forbid void,
    and the units in use are those that the schedule says.
    """
    forced = core.setup.view.mask_name == "live" and bool(before.mask[:-1].any())
    require(bool(before.mask[-1] == 1) or forced, "the mask forbids void")
    _check_action(core, before, after, action, reward, where)
    _check_units(core, where)
    late = after.time > core.world.max_time
    require(late or not after.truncated, f"an episode is truncated before max_time {where}")


def _check_action(
    core: Any, before: Moment, after: Moment, action: int, reward: float, where: str
) -> None:
    if not before.mask[-1] and not before.mask[action]:
        action = int(before.mask.argmax())
    allowed = bool(before.mask[action]) and action < core.world.cluster.num_slots
    passed = after.time - before.time
    placed = after.num_placed - before.num_placed
    require(passed in (0, 1), f"the clock moves by {passed} {where}")
    require(
        placed == 1 - passed,
        f"the clock moves by {passed}, but {placed} jobs are booked; a step is one or the other "
        f"{where}",
    )
    require(passed == 1 or reward == 0, f"a booking has the reward {reward} {where}")
    require(passed == 0 or not allowed, f"the mask allows a slot that books nothing {where}")
    if core.setup.view.mask_name == "placeable":
        require(passed == 1 or allowed, f"the mask forbids a slot that books a job {where}")
    elif passed == 0:
        now = _booked_start(before.schedule, after.schedule) == before.time
        require(now == allowed, f"the mask is wrong about whether a job starts now {where}")


def _booked_start(before: Schedule, after: Schedule) -> int:
    """Start of the one job that was booked between two moments of the same time."""
    booked = np.flatnonzero(before.start != after.start)
    return int(after.start[booked[0]])


def _check_units(core: Any, where: str) -> None:
    simulator, jobs = core.simulator, core.schedule()
    used = core.world.layout.occupied_of(simulator.states)[0].astype(np.int64)
    require(
        bool((used <= np.asarray(core.world.cluster.capacity)).all()),
        f"more units are in use than the cluster has {where}",
    )
    steps = int(simulator.time[0]) + np.arange(core.world.cluster.horizon)[:, None]
    runs = (jobs.start >= 0) & (jobs.start <= steps) & (steps < jobs.start + jobs.duration)
    require(
        np.array_equal(used, runs @ jobs.demand.astype(np.int64)),
        f"the units in use are not those of the schedule {where}",
    )
