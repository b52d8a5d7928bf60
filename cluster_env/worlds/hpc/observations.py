"""Observations by name, for the environments."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.registry import Registry
from cluster_env.core.world import Features, Observation
from cluster_env.worlds.hpc.world import HPC

LARGEST = 6.0
"""No feature is further from 0: all are shares and logarithms of what a state can hold."""

OBSERVATIONS: Registry[Callable[[HPC], Observation]] = Registry("observation")


def _write_jobs(world: HPC, states: NDArray[np.int32], out: Any) -> None:
    allowed = np.empty((states.shape[0], world.num_actions), np.bool_)
    world.features(states, Features(out["jobs"], out["context"], allowed))


def _write_state(states: NDArray[np.int32], out: Any) -> None:
    out[:] = states


@OBSERVATIONS.register("jobs")
def _jobs(world: HPC) -> Observation:
    """What networks see: features of each waiting job, and of the machine."""
    of_job, of_context = map(len, world.feature_names)
    space = spaces.Dict(
        {
            "context": spaces.Box(-LARGEST, LARGEST, (of_context,), np.float32),
            "jobs": spaces.Box(-LARGEST, LARGEST, (world.queue, of_job), np.float32),
        }
    )
    return Observation(space, partial(_write_jobs, world))


@OBSERVATIONS.register("state")
def _state(world: HPC) -> Observation:
    return Observation(world.state_space, _write_state)
