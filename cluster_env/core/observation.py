"""What an environment shows of a state, and which actions it allows.

Every world can show the observations ``state``, ``features`` and ``flat``, and the mask
``allowed``; a world registers what else it shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.world import Features, Mask, State, World

# An infinite bound would do as well, but Gymnasium's checker takes it for an oversight.
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Observation:
    """A way to look at a state.

    Attributes:
        space: what the observation of one state is.
        write: called with states, ``(n, state_size)``, and a batch of n observations, which it
            fills.
        world: whose states they are, where it needs more of a state than the world shows that it
            was made for.
    """

    space: spaces.Space[Any]
    write: Callable[[State, Any], object]
    world: World | None = None


def state_observation(world: World) -> Observation:
    """The observation ``state``: the integers of a state as they are."""
    return Observation(world.state_space, partial(_write_state, world))


def features_observation(
    world: World, items: str = "items", low: float = -_LARGEST, high: float = _LARGEST
) -> Observation:
    """The observation ``features``: what networks see, of the items and of the context.

    A world may call the ``items`` by a name of its own. All features lie in ``[low, high]``.
    """
    num_items = world.num_actions - 1
    item_size, context_size = map(len, world.feature_names)
    space = spaces.Dict(
        {
            "context": spaces.Box(low, high, (context_size,), np.float32),
            items: spaces.Box(low, high, (num_items, item_size), np.float32),
        }
    )
    return Observation(space, partial(_write_features, world, items))


def flat_observation(world: World) -> Observation:
    """The observation ``flat``: the features in one row, the items one after the other first."""
    item_size, context_size = map(len, world.feature_names)
    size = (world.num_actions - 1) * item_size + context_size
    space = spaces.Box(-_LARGEST, _LARGEST, (size,), np.float32)
    return Observation(space, partial(_write_flat, world))


def allowed_mask(world: World, states: State, out: Mask | None = None) -> Mask:
    """The mask ``allowed``: the actions that the features allow."""
    allowed = world.features(states).allowed
    if out is None:
        return allowed
    out[:] = allowed
    return out


def _write_state(world: World, states: State, out: Any) -> None:
    require_states(states, world.state_space)
    out[:] = states


def _write_features(world: World, items: str, states: State, out: Any) -> None:
    require_states(states, world.state_space)
    # Features have a mask among them, which the observation does not show.
    allowed = np.empty((states.shape[0], world.num_actions), np.bool_)
    world.features(states, Features(out[items], out["context"], allowed))


def _write_flat(world: World, states: State, out: Any) -> None:
    out[:] = flattened(world.features(states))


def flattened(features: Features) -> NDArray[np.float32]:
    """Features of n states as rows, float32 ``(n, num_items * item_size + context_size)``."""
    return np.hstack([features.items.reshape(len(features.items), -1), features.context])
