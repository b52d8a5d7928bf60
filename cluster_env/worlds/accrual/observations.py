"""Observations by name, for the environments."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.registry import Registry
from cluster_env.core.world import Features, Observation
from cluster_env.worlds.accrual.features import Context, Item
from cluster_env.worlds.accrual.world import Accrual

OBSERVATIONS: Registry[Callable[[Accrual], Observation]] = Registry("observation")


def _write_candidates(world: Accrual, states: NDArray[np.int32], out: Any) -> None:
    allowed = np.empty((states.shape[0], world.num_actions), np.bool_)
    world.features(states, Features(out["candidates"], out["context"], allowed))


def _write_state(states: NDArray[np.int32], out: Any) -> None:
    out[:] = states


@OBSERVATIONS.register("candidates")
def _candidates(world: Accrual) -> Observation:
    """What networks see: features of each candidate, and of the server."""
    space = spaces.Dict(
        {
            "candidates": spaces.Box(0, 1, (world.candidates, len(Item._fields)), np.float32),
            "context": spaces.Box(0, 1, (len(Context._fields),), np.float32),
        }
    )
    return Observation(space, partial(_write_candidates, world))


@OBSERVATIONS.register("state")
def _state(world: Accrual) -> Observation:
    return Observation(world.state_space, _write_state)
