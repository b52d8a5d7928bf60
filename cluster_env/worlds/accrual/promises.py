"""What an environment of this world promises at every step."""

from typing import Any

import numpy as np

from cluster_env.core.promises import Moment, Promises, require


def _check_step(
    core: Any, before: Moment, after: Moment, action: int, reward: float, where: str
) -> None:
    """Time never goes back, and stands still only where a candidate was there to be chosen.

    Jobs hold no more processors than the server has, and the idle ones are those that the state
    shows.
    """
    require(after.time >= before.time, f"the clock goes back {where}")
    goes_on = not (after.terminated or after.truncated)
    offered = bool(before.mask[:-1].any())
    require(after.time > before.time or offered or not goes_on, f"time stands still {where}")
    pieces = core.schedule().pieces
    if not goes_on or pieces is None:
        return
    until = pieces.end == after.time
    used = int(pieces.units[until, 0].sum())
    idle = int(core.simulator.states[0, 3])
    require(used <= core.world.processors, f"more processors are used than there are {where}")
    require(0 <= idle <= core.world.processors, f"{idle} processors are idle {where}")
    require(bool(np.isfinite(reward)), f"the reward is {reward} {where}")


PROMISES = Promises(
    _check_step,
    # One that is cut ends at max_time itself.
    lambda world: None if world.drop_expired else int(world.max_time) - 1,
    lambda world: True,
)
