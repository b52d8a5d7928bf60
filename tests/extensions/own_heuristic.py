"""A heuristic of one's own: first come, first served, where the head of the queue blocks.

Known to every command with METASCHED_IMPORTS=own_heuristic in the environment:
metasched compare --policies fcfs,sjf
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import Heuristic, no_argument
from cluster_env.worlds import get_kind
from cluster_env.worlds.deeprm import DeepRM

DEEPRM = get_kind("deeprm")


@dataclass(frozen=True)
class FirstComeFirstServed:
    """Starts the job that has waited longest as soon as it fits, and no other before."""

    world: DeepRM
    name: str = "fcfs"

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        layout = self.world.layout
        present = layout.slots_of(states)[:, :, 0] > 0
        waited = np.where(present, states[:, layout.waited].astype(int), -1)
        head = waited.argmax(axis=1)
        startable = DEEPRM.masks.get("start_now")(self.world, states)
        starts = startable[np.arange(len(states)), head] & present.any(axis=1)
        return np.where(starts, head, self.world.cluster.num_slots).astype(np.int32)


@DEEPRM.heuristics.register("fcfs")
@Heuristic
def _fcfs(world: DeepRM, argument: str) -> FirstComeFirstServed:
    no_argument("fcfs", argument)
    return FirstComeFirstServed(world)
