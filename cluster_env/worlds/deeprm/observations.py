"""Observations and masks of environments, by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import output, require_states
from cluster_env.core.compiled import njit_kernel
from cluster_env.core.observation import Observation
from cluster_env.core.registry import Registry
from cluster_env.core.world import Mask
from cluster_env.worlds.deeprm.features import (
    FOR_EVER,
    IDLE_PATIENCE,
    context_feature_names,
    slot_feature_names,
    write_allowed,
    write_context,
    write_slots,
)
from cluster_env.worlds.deeprm.image import ImageLayout, image
from cluster_env.worlds.deeprm.state import StateLayout, StateShape
from cluster_env.worlds.deeprm.world import DeepRM

States = NDArray[np.uint8]

OBSERVATIONS: Registry[Callable[[DeepRM], Observation]] = Registry("observation")
MASKS: Registry[Callable[..., Mask]] = Registry("mask")


@MASKS.register("live")
def live_mask(world: DeepRM, states: States, out: Mask | None = None) -> Mask:
    """As `start_now_mask`, but an idle cluster may not wait for ever; see `IDLE_PATIENCE`.

    Void is forbidden where nothing runs, a job could start, and nothing has arrived for that many
    time steps; an environment then starts the first job that can. So every policy finishes all
    jobs, whether it reads the mask or not. Networks see the same.
    """
    return _allowed(world, states, 0, IDLE_PATIENCE, out)


@MASKS.register("placeable")
def placeable_mask(world: DeepRM, states: States, out: Mask | None = None) -> Mask:
    """Void and the slots whose job can be placed somewhere in the horizon, bool ``(n, actions)``.

    These are the actions for which time stands still, and void. Any other action has the same
    effect as void.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    return _allowed(world, states, world.cluster.horizon, FOR_EVER, out)


@MASKS.register("start_now")
def start_now_mask(world: DeepRM, states: States, out: Mask | None = None) -> Mask:
    """Void and the slots whose job would start in the present time step; see `placeable_mask`.

    A policy under this mask never books a job for later, as the heuristics never do.
    """
    return _allowed(world, states, 0, FOR_EVER, out)


def _allowed(world: DeepRM, states: States, latest: int, patience: int, out: Mask | None) -> Mask:
    """A mask; see `write_allowed`."""
    require_states(states, world.state_space)
    mask: Mask = output(out, (states.shape[0], world.num_actions), np.bool_)
    write_allowed(states, world.layout.shape, world.switches.try_last_start, latest, patience, mask)
    return mask


@OBSERVATIONS.register("image")
def image_observation(world: DeepRM) -> Observation:
    """DeepRM's image, see `image`."""
    space = spaces.Box(0, 1, ImageLayout(world.cluster).shape, np.uint8)
    return Observation(space, partial(image, world.layout))


@OBSERVATIONS.register("compact")
def compact_observation(world: DeepRM) -> Observation:
    """Numbers in a row, see `compact`."""
    cluster = world.cluster
    # The largest numbers that can stand there: of free units, of slots, of the backlog.
    high = np.concatenate(
        [
            np.repeat(cluster.capacity, cluster.horizon),
            np.tile([cluster.horizon, *cluster.capacity], cluster.num_slots),
            [255],
        ]
    ).astype(np.float32)
    space = spaces.Box(np.zeros_like(high), high, dtype=np.float32)
    return Observation(space, partial(compact, world.layout))


@OBSERVATIONS.register("slots")
def slots_observation(world: DeepRM) -> Observation:
    """What a network sees, but for the arrival window."""
    cluster = world.cluster
    slots = (cluster.num_slots, len(slot_feature_names(cluster)))
    context = (len(context_feature_names(cluster)) - 1,)
    space = spaces.Dict(
        {
            "context": spaces.Box(0, 1, context, np.float32),
            "slots": spaces.Box(0, 1, slots, np.float32),
        }
    )
    return Observation(space, partial(_write_slots, world, space))


def _write_slots(world: DeepRM, space: spaces.Dict, states: States, out: Any) -> None:
    require_states(states, world.state_space)
    shape, try_last_start = world.layout.shape, world.switches.try_last_start
    slots, context = (
        output(out[name], (states.shape[0], *(space[name].shape or ())), np.float32)
        for name in ("slots", "context")
    )
    write_slots(states, shape, try_last_start, slots)
    write_context(states, shape, context)


def compact_size(layout: StateLayout) -> int:
    """Numbers of a compact observation; 71 for the default cluster."""
    return layout.backlog + 1


def compact(
    layout: StateLayout, states: States, out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Lists free units, slots and backlog, unscaled, as the released code's compact representation.

    The order is: for each resource, the free units of each coming time step; for each slot,
    duration and demands, 0 if it is empty; the number of jobs in the backlog (255 at most).

    These are the last columns of the released code's, which begins with another `horizon` columns:
    how many of the placed jobs are still to finish at each step. They are left out because they are
    no function of a state, which keeps units in use but not whose.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    require_states(states, layout.space)
    listed: NDArray[np.float32] = output(out, (states.shape[0], compact_size(layout)), np.float32)
    _list(states, layout.shape, listed)
    return listed


@njit_kernel
def _list(states: States, shape: StateShape, out: NDArray[np.float32]) -> None:
    horizon, resources = shape.horizon, shape.capacity.size
    for i in range(states.shape[0]):
        # A state has the resources of a step beside each other, the list the steps of a resource.
        for r in range(resources):
            for h in range(horizon):
                out[i, r * horizon + h] = shape.capacity[r] - states[i, h * resources + r]
        # Slots and backlog stand in the same order in both.
        for k in range(shape.slots_at, out.shape[1]):
            out[i, k] = states[i, k]
