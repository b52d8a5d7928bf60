r"""Values of states that are fitted to the episodes of a stage: what makes long windows cheap.

The return of a decision holds all that happens until the window ends, of which the decision has
caused next to nothing. What it has caused is mostly seen in the next state: which jobs still wait.
So the returns of a stage are regressed on what its states hold, and advantages are sums of temporal
differences of these values (Schulman et al., *High-dimensional continuous control using generalized
advantage estimation*, 2016). A task has some 20,000 decisions and the regression some 100
coefficients, so that nothing has to be learned before the task is met.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import World
from rllib_configs.learning.advantages import DiscountPer, advantages_by_clock
from rllib_configs.networks.linear import linear, products
from rllib_configs.runners.rollout import Rollouts

RIDGE = 1e-3
"""What is added to the variance of each standardized feature."""

_LEAST = 1e-12  # variance of a feature that counts
_STEPS = 4096  # of the mantissa of a coefficient
_PIECE = 4096  # rows whose features are in memory at a time
_CLASS = "class_"


def fitted_values(
    world: World, rollouts: Rollouts, gamma: float, discount_per: DiscountPer
) -> NDArray[np.float64]:
    """The value of each decision's state, float64 ``(rows,)``, but for what its jobsets share.

    Episodes of a jobset see the same arrivals, so that only differences at the same time count:
    the ridge regression is of the return less that of the jobset's other episodes from the same
    time on, on the features less their mean at that time.
    """
    nothing = np.zeros(rollouts.num_rows)
    places = (rollouts.row, rollouts.time, rollouts.row_jobset)
    returns, _ = advantages_by_clock(rollouts.rewards, nothing, *places, gamma, 1.0, discount_per)
    features = _state_features(world, rollouts.states)
    # What is left when the mean over the decisions of a jobset at a time is taken away.
    jobset = rollouts.row_jobset[rollouts.row].astype(np.int64)
    clock = np.asarray(rollouts.time, np.int64)
    order = np.argsort(jobset * (int(clock.max(initial=0)) + 1) + clock, kind="stable")
    begins = np.flatnonzero(np.diff(jobset[order], prepend=-1) | np.diff(clock[order], prepend=-1))
    count = np.diff(begins, append=order.size)
    sorted_features, sorted_returns = features[order], returns[order].astype(np.float32)
    means = np.add.reduceat(sorted_features, begins, axis=0) / count[:, None].astype(np.float32)
    centered = sorted_features - np.repeat(means, count, axis=0)
    mean_returns = np.add.reduceat(sorted_returns, begins) / count
    target = sorted_returns - np.repeat(mean_returns.astype(np.float32), count)
    # Ridge regression on standardized features; those that never differ have no coefficient.
    squares = np.einsum("ij,ij->j", centered, centered) / max(1, order.size)
    varies = squares > _LEAST
    scale = np.sqrt(np.where(varies, squares, 1.0))
    gram = products(centered, centered) / (max(1, order.size) * np.outer(scale, scale))
    gram = np.where(np.outer(varies, varies), gram, 0.0) + RIDGE * np.eye(scale.size)
    projected = products(centered, target[:, None])[:, 0] / (max(1, order.size) * scale)
    coefficients = np.linalg.solve(gram, np.where(varies, projected, 0.0)) / scale
    # Digits that depend on how a processor or several cores solve it are rounded away.
    mantissa, exponent = np.frexp(coefficients)
    rounded = np.ldexp(np.rint(mantissa * _STEPS) / _STEPS, exponent).astype(np.float32)
    values = linear(features, rounded[:, None], np.zeros(1, np.float32))
    return values[:, 0].astype(np.float64)


def _state_features(world: World, states: NDArray[Any]) -> NDArray[np.float32]:
    """Sums of the features of items, by class where items have one, and the context.

    float32 ``(rows, features)``.
    """
    names = world.feature_names[0]
    classes = [column for column, name in enumerate(names) if name.startswith(_CLASS)]
    others = [column for column in range(len(names)) if column not in classes]
    pieces = []
    for first in range(0, len(states), _PIECE):
        items, context, _ = world.features(states[first : first + _PIECE])
        own = items[:, :, others]
        if classes:
            of_class = items[:, :, classes].transpose(0, 2, 1)
            sums = np.einsum("rci,rif->rcf", of_class, own).reshape(len(items), -1)
        else:
            sums = own.sum(axis=1)
        pieces.append(np.concatenate([sums, context], axis=1))
    return np.concatenate(pieces)
