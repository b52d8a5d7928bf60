r"""What rewards went with so far: a context that stands in for gradient steps.

In RL\ :sup:`2` (Duan et al., 2016) a recurrent network sees its rewards beside its states, over
several episodes of a task, and finds out by itself what they say. Here the summary is fixed, and
only what to make of it is learned: a ridge regression of the rewards so far on sums of the features
of the items that were there. It does not depend on the order of the decisions, and is as long after
a thousand episodes as after one. Its numbers are standardized, so that it does not depend on the
unit of an objective.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import World
from rllib_configs.conditioned import ConditionedWorld
from rllib_configs.networks.conditions import rewards_told
from rllib_configs.runners.rollout import Rollouts

RIDGE = 0.1
"""What is added to the variance of each standardized feature: features of jobs go together."""

_DIGITS = 6  # of a context
_PIECE = 4096  # rows whose features are in memory at a time

Vector = NDArray[np.float64]


class RewardSums:
    """Sums over rewarded decisions of a task.

    A decision counts if its reward is not 0: elsewhere no time passed, or nothing was there.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._size = len(rewards_told(world))
        self._count, self._absolute = 0, 0.0
        self._sums = np.zeros(self._size)  # of the features, then of the reward
        self._products = np.zeros((self._size, self._size))

    def add(self, rollouts: Rollouts) -> None:
        """Adds the decisions of episodes."""
        rows = np.flatnonzero(rollouts.rewards)
        for first in range(0, rows.size, _PIECE):
            piece = rows[first : first + _PIECE]
            items = self._world.features(rollouts.states[piece]).items
            rewards = rollouts.rewards[piece]
            seen = np.column_stack([items.sum(axis=1, dtype=np.float64), rewards])
            self._count += piece.size
            self._absolute += float(np.abs(rewards).sum())
            self._sums += seen.sum(axis=0)
            self._products += seen.T @ seen

    def context(self) -> Vector:
        """What a policy is conditioned on, float64 ``(1 + item_size,)``, each of order 1.

        First the mean reward over the mean absolute one: its sign. Then the standardized
        coefficient of each feature; 0 where it or the reward has been the same throughout.
        Digits that depend on the order of sums, and so on the processor, are rounded away.
        """
        context = np.zeros(self._size)
        if not self._absolute:
            return context
        context[0] = self._sums[-1] / self._absolute
        # Covariances of the features and of the reward, which comes last.
        means = self._sums / self._count
        covariance = self._products / self._count - np.outer(means, means)
        variance = np.diag(covariance)
        varies = variance > 1e-9 * (means**2 + 1e-9)
        if not varies[-1]:
            return context
        # Ridge regression of the standardized reward on the standardized features.
        scale = np.where(varies, np.sqrt(np.maximum(variance, 1e-300)), 1.0)
        correlation = np.where(np.outer(varies, varies), covariance / np.outer(scale, scale), 0.0)
        ridge = correlation[:-1, :-1] + RIDGE * np.eye(self._size - 1)
        context[1:] = np.linalg.solve(ridge, correlation[:-1, -1])
        return context.round(_DIGITS)


def world_in_context(seen: World, context: Vector) -> World:
    """A world as a network sees it, with what rewards went with so far; see `seen_world`."""
    assert isinstance(seen, ConditionedWorld)
    others = seen.condition[: -context.size]
    names = (name for name, _ in seen.condition[-context.size :])
    condition = (*others, *zip(names, context.tolist(), strict=True))
    changed: World = replace(seen, condition=condition)
    return changed
