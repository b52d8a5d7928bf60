"""The observation ``graph``: stages as nodes with their features, and edges to their children."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.observation import Observation, state_observation
from cluster_env.core.registry import Registry
from cluster_env.worlds.graphs.features import Context, Item, describe_stages
from cluster_env.worlds.graphs.state import CANDIDATE, HEADER
from cluster_env.worlds.graphs.world import Graphs

NODES = 128
"""Stages that an environment shows, where its world does not say how many."""

_LARGEST = float(np.finfo(np.float32).max)


def graph_observation(world: Graphs) -> Observation:
    """Stages that have not ended of the jobs that are here, for networks on graphs.

    * ``nodes``: float32 ``(nodes, len(Item))``, the features `Item`.
    * ``edges``: int8 ``(nodes, nodes)``, 1 where the first is a parent of the second.
    * ``actions``: int32 ``(nodes,)``, the action that picks the stage, or -1. Where executors are
      counted, 0 at the picked stage.
    * ``context``: float32, the features `Context`.
    """
    seen = world if world.nodes else replace(world, nodes=NODES)
    size, item_size, context_size = seen.nodes, len(Item._fields), len(Context._fields)
    space = spaces.Dict(
        {
            "nodes": spaces.Box(-_LARGEST, _LARGEST, (size, item_size), np.float32),
            "edges": spaces.Box(0, 1, (size, size), np.int8),
            "actions": spaces.Box(-1, seen.num_actions - 1, (size,), np.int32),
            "context": spaces.Box(-_LARGEST, _LARGEST, (context_size,), np.float32),
        }
    )
    return Observation(space, partial(_write, seen), seen)


def _write(world: Graphs, states: NDArray[np.int32], out: dict[str, Any]) -> None:
    require_states(states, world.state_space)
    out["context"][:] = world.features(states).context
    describe_stages(world.options, states, world.num_actions - 1, out["nodes"])
    items, size = world.num_actions - 1, world.nodes
    rows = states[:, len(HEADER) : -2 * size].reshape(len(states), items + size, len(CANDIDATE))
    here, job, stage = (
        rows[:, :, column] for column in (CANDIDATE.here, CANDIDATE.job, CANDIDATE.stage)
    )
    number = np.where(here > 0, job.astype(np.int64) << 6 | stage, -1)  # stages are below 64
    picks = (number[:, items:, None] == number[:, None, :items]) & (here[:, items:, None] > 0)
    out["actions"][:] = np.where(picks.any(axis=2), picks.argmax(axis=2), -1)
    parents = states[:, -2 * size :].reshape(len(states), size, 2).astype(np.int64)
    bits = parents[:, :, 0] | parents[:, :, 1] << 31
    above = number[:, items:, None]
    same_job = (above >> 6 == number[:, None, items:] >> 6) & (above >= 0)
    out["edges"][:] = same_job & (bits[:, None, :] >> (above & 63) & 1 > 0)


OBSERVATIONS: Registry[Callable[[Any], Observation]] = Registry(
    "observation", {"state": state_observation, "graph": graph_observation}
)
