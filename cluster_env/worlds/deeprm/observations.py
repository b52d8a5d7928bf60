"""Observations and masks by name, for the environments."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.observation import Observation
from cluster_env.core.registry import Registry
from cluster_env.core.world import Mask
from cluster_env.worlds.deeprm.compact import compact
from cluster_env.worlds.deeprm.features import (
    context_feature_names,
    slot_feature_names,
    slot_features,
)
from cluster_env.worlds.deeprm.image import ImageLayout, image
from cluster_env.worlds.deeprm.masks import live_mask, placeable_mask, start_now_mask
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.world import DeepRM

States = NDArray[np.uint8]


OBSERVATIONS: Registry[Callable[[DeepRM], Observation]] = Registry("observation")
MASKS: Registry[Callable[..., Mask]] = Registry("mask")


def _mask(
    mark: Callable[..., Mask], world: DeepRM, states: States, out: Mask | None = None
) -> Mask:
    """A mask of states under the rules of a world."""
    return mark(states, world.layout, world.switches.try_last_start, out)


MASKS.register("placeable")(partial(_mask, placeable_mask))
MASKS.register("start_now")(partial(_mask, start_now_mask))
MASKS.register("live")(partial(_mask, live_mask))


def _write_image(layout: StateLayout, states: States, out: Any) -> None:
    image(states, layout, out)


def _write_compact(layout: StateLayout, states: States, out: Any) -> None:
    compact(states, layout, out)


def _write_slots(world: DeepRM, states: States, out: Any) -> None:
    slot_features(
        states, world.layout, world.switches.try_last_start, (out["slots"], out["context"])
    )


@OBSERVATIONS.register("image")
def _image(world: DeepRM) -> Observation:
    space = spaces.Box(0, 1, ImageLayout(world.cluster).shape, np.uint8)
    return Observation(space, partial(_write_image, world.layout))


@OBSERVATIONS.register("compact")
def _compact(world: DeepRM) -> Observation:
    cluster = world.cluster
    high = np.concatenate(
        [
            np.repeat(cluster.capacity, cluster.horizon),
            np.tile([cluster.horizon, *cluster.capacity], cluster.num_slots),
            [255],
        ]
    ).astype(np.float32)
    space = spaces.Box(np.zeros_like(high), high, dtype=np.float32)
    return Observation(space, partial(_write_compact, world.layout))


@OBSERVATIONS.register("slots")
def _slots(world: DeepRM) -> Observation:
    cluster = world.cluster
    num_features = len(slot_feature_names(cluster))
    num_context = len(context_feature_names(cluster))
    space = spaces.Dict(
        {
            "context": spaces.Box(0, 1, (num_context,), np.float32),
            "slots": spaces.Box(0, 1, (cluster.num_slots, num_features), np.float32),
        }
    )
    return Observation(space, partial(_write_slots, world))
