"""Observations and masks by name, for the environments."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.registry import Registry
from cluster_env.worlds.deeprm.compact import compact
from cluster_env.worlds.deeprm.features import (
    context_feature_names,
    slot_feature_names,
    slot_features,
)
from cluster_env.worlds.deeprm.image import ImageLayout, image
from cluster_env.worlds.deeprm.masks import Mask, live_mask, placeable_mask, start_now_mask
from cluster_env.worlds.deeprm.state import StateLayout

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Observation:
    """A way to look at a state.

    Attributes:
        space: what the observation of one state is.
        write: called with states, uint8 ``(n, state_size)``, and a batch of n observations, which
            it fills.
    """

    space: spaces.Space[Any]
    write: Callable[[Codes, Any], None]


# The bool is the rule try_last_start, on which it depends when a job can start.
OBSERVATIONS: Registry[Callable[[StateLayout, bool], Observation]] = Registry("observation")
MASKS: Registry[Callable[[Codes, StateLayout, bool, Mask], Mask]] = Registry("mask")
MASKS.register("placeable")(placeable_mask)
MASKS.register("start_now")(start_now_mask)
MASKS.register("live")(live_mask)


def _write_image(layout: StateLayout, states: Codes, out: Any) -> None:
    image(states, layout, out)


def _write_compact(layout: StateLayout, states: Codes, out: Any) -> None:
    compact(states, layout, out)


def _write_slots(layout: StateLayout, try_last_start: bool, states: Codes, out: Any) -> None:
    slot_features(states, layout, try_last_start, (out["slots"], out["context"]))


def _write_code(states: Codes, out: Any) -> None:
    out[:] = states


@OBSERVATIONS.register("image")
def _image(layout: StateLayout, try_last_start: bool) -> Observation:
    space = spaces.Box(0, 1, ImageLayout(layout.cluster).shape, np.uint8)
    return Observation(space, partial(_write_image, layout))


@OBSERVATIONS.register("compact")
def _compact(layout: StateLayout, try_last_start: bool) -> Observation:
    cluster = layout.cluster
    high = np.concatenate(
        [
            np.repeat(cluster.capacity, cluster.horizon),
            np.tile([cluster.horizon, *cluster.capacity], cluster.num_slots),
            [255],
        ]
    ).astype(np.float32)
    space = spaces.Box(np.zeros_like(high), high, dtype=np.float32)
    return Observation(space, partial(_write_compact, layout))


@OBSERVATIONS.register("slots")
def _slots(layout: StateLayout, try_last_start: bool) -> Observation:
    cluster = layout.cluster
    num_features = len(slot_feature_names(cluster))
    num_context = len(context_feature_names(cluster))
    space = spaces.Dict(
        {
            "context": spaces.Box(0, 1, (num_context,), np.float32),
            "slots": spaces.Box(0, 1, (cluster.num_slots, num_features), np.float32),
        }
    )
    return Observation(space, partial(_write_slots, layout, try_last_start))


@OBSERVATIONS.register("code")
def _code(layout: StateLayout, try_last_start: bool) -> Observation:
    return Observation(spaces.Box(0, 255, (layout.size,), np.uint8), _write_code)
