"""An observation of one's own: only how much is free now, and what waits in the slots.

import own_observation
gymnasium.make("DeepRM-v0", observation="short")
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.observation import Observation
from cluster_env.worlds import get_spec
from cluster_env.worlds.deeprm import DeepRM


@get_spec("deeprm").environments.observations.register("short")
def _short(world: DeepRM) -> Observation:
    cluster = world.cluster
    num_free, per_slot = cluster.num_resources, 1 + cluster.num_resources

    def write(states: NDArray[np.uint8], out: Any) -> None:
        out[:, :num_free] = cluster.capacity - world.layout.occupied_of(states)[:, 0]
        out[:, num_free:] = states[:, world.layout.slots]

    size = num_free + cluster.num_slots * per_slot
    return Observation(spaces.Box(0, 255, (size,), np.float32), write)
