"""A heuristic of one's own: last come, first served.

Known to every command with METASCHED_IMPORTS=own_heuristic in the environment:
metasched compare --policies lcfs,sjf
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.registry import no_argument
from cluster_env.core.spec import Heuristic
from cluster_env.worlds import get_spec
from cluster_env.worlds.deeprm import DeepRM

DEEPRM = get_spec("deeprm")


@dataclass(frozen=True)
class LastComeFirstServed:
    """Starts, of the jobs that can start now, the one that arrived last."""

    world: DeepRM
    name: str = "lcfs"

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        startable = DEEPRM.environments.masks.get("start_now")(self.world, states)[:, :-1]
        # Of a wider type first: 256 does not fit into the bytes of a state.
        waited = states[:, self.world.layout.waited].astype(np.int16)
        waited = np.where(startable, waited, 256)
        void = self.world.cluster.num_slots
        return np.where(startable.any(axis=1), waited.argmin(axis=1), void).astype(np.int32)


@DEEPRM.heuristics.register("lcfs")
@Heuristic
def _lcfs(world: DeepRM, argument: str) -> LastComeFirstServed:
    no_argument("lcfs", argument)
    return LastComeFirstServed(world)
