"""A world whose static scheduler decides less and less in the course of a training."""

from dataclasses import replace
from typing import Any

import numpy as np

from cluster_env.core.world import World
from rllib_configs.options import TrainingSection
from rllib_configs.runners.rollout import Rollouts


def world_in(training: TrainingSection, world: World, iteration: int | None) -> World:
    """The world as an iteration meets it (PANDA, section 5: the hybrid approach).

    The share of clocks at which its static scheduler decides goes evenly from ``training.hybrid``
    in the first iteration to the world's own in the last one. It depends on nothing else, so that
    runners and resumed runs have the same.

    Args:
        training: how it is learned.
        world: the task's.
        iteration: of the run; None where policies are measured, which is in the task's world.
    """
    begin = getattr(training, "hybrid", 0.0)
    if iteration is None or not begin:
        return world
    hybrid: Any = world
    gone = min(iteration / max(training.iterations - 1, 1), 1.0)
    changed: World = replace(hybrid, hybrid=(1.0 - gone) * begin + gone * hybrid.hybrid)
    return changed


def without_overruled(world: World, rollouts: Rollouts) -> Rollouts:
    """Rollouts whose decisions count as certain where the static scheduler took them instead."""
    hybrid: Any = world
    if not getattr(hybrid, "hybrid", 0.0):
        return rollouts
    learned = np.where(hybrid.overruled(rollouts.time), 0, rollouts.log_probabilities)
    return replace(rollouts, log_probabilities=learned.astype(np.float32))
