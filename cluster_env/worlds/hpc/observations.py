"""Observations by name, for the environments."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.core.world import Features, Observation
from cluster_env.worlds.hpc.views import CompactView, ImageView
from cluster_env.worlds.hpc.world import HPC

LARGEST = 6.0
"""No feature is further from 0: all are shares and logarithms of what a state can hold."""

TIME_HORIZON, EVENT_HORIZON = 20, 60
"""Rows where a world has no horizon: of moments (section 5.1.1), of expected ends (table 5.5)."""

MINUTE = 60
"""Seconds between moments where neither the horizon nor the clock has a step."""

OBSERVATIONS: Registry[Callable[[HPC], Observation]] = Registry("observation")


def _write_jobs(world: HPC, states: NDArray[np.int32], out: Any) -> None:
    allowed = np.empty((states.shape[0], world.num_actions), np.bool_)
    world.features(states, Features(out["jobs"], out["context"], allowed))


def _write_state(states: NDArray[np.int32], out: Any) -> None:
    out[:] = states


def _write_compact(view: CompactView, states: NDArray[np.int32], out: Any) -> None:
    out[:] = view.scaled(states)


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


@OBSERVATIONS.register("image")
def _image(world: HPC) -> Observation:
    """Section 4.4: the machine and the queue as rectangles of time x units."""
    seen = _at_moments(world)
    view = ImageView(seen.capacity, seen.layout, seen.horizon_step)
    return Observation(spaces.Box(0, 1, view.shape, np.uint8), view.draw, seen)


@OBSERVATIONS.register("compact")
def _compact(world: HPC) -> Observation:
    """Table 4.1: the same in numbers, as many for a machine of any size."""
    return compact_observation(_at_moments(world), by_events=False)


@OBSERVATIONS.register("events")
def _events(world: HPC) -> Observation:
    """Table 4.2: the compact observation of the semi-MDP, with the next expected ends."""
    if world.horizon_step:
        raise InputError(
            f"the observation events shows expected ends, so leave out horizon_step, but "
            f"{world.horizon_step} was given"
        )
    seen = world if world.horizon else replace(world, horizon=EVENT_HORIZON)
    return compact_observation(seen, by_events=True)


@OBSERVATIONS.register("state")
def _state(world: HPC) -> Observation:
    return Observation(world.state_space, _write_state)


def compact_observation(world: HPC, by_events: bool) -> Observation:
    """The observation of table 4.1, or 4.2, of a world with a horizon."""
    view = CompactView(world.capacity, world.resources, world.layout, by_events)
    space = spaces.Box(0, 1, (len(view.columns.names),), np.float32)
    return Observation(space, partial(_write_compact, view), world)


def _at_moments(world: HPC) -> HPC:
    """A world whose states show what is expected at regular moments."""
    step = world.horizon_step or world.time_step or MINUTE
    return replace(world, horizon=world.horizon or TIME_HORIZON, horizon_step=step)
