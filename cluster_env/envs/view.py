"""What a policy sees of a state: the observation and the action mask."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array
from numpy.typing import NDArray

from cluster_env.core.spec import spec_of
from cluster_env.core.world import State, World


class View:
    """Computes observations and masks of many states at once, by names as `ClusterEnv` has them.

    Its `world` is the one whose states it looks at. With `mask_in_observation`, observations have
    the names that RLlib's own masked modules look for.

    Raises:
        InputError: for an unknown name.
    """

    def __init__(
        self, world: World, observation: str | None, mask: str | None, mask_in_observation: bool
    ) -> None:
        known = spec_of(world).environments
        self.mask_name = mask or known.masks.names()[0]
        self._observation = known.observations.get(observation or known.observations.names()[0])(
            world
        )
        self.world = self._observation.world or world
        self._mask = known.masks.get(self.mask_name)
        self._mask_in_observation = mask_in_observation
        self.action_space: spaces.Discrete[Any] = spaces.Discrete(world.num_actions)
        self.observation_space = self._observation.space
        if mask_in_observation:
            mask_space = spaces.Box(0, 1, (world.num_actions,), np.int8)
            self.observation_space = spaces.Dict(
                {"action_mask": mask_space, "observations": self._observation.space}
            )

    def buffer(self, num_states: int) -> Any:
        """Room for the observations of a number of states."""
        return create_empty_array(self.observation_space, num_states, np.zeros)

    def look(self, states: State, buffer: Any) -> NDArray[np.int8]:
        """Fills a buffer with the observations of n states, and returns their masks.

        The masks are int8 ``(n, num_actions)`` of zeros and ones, as ``Discrete.sample`` wants it.
        """
        mask = self.masks(states)
        if self._mask_in_observation:
            buffer["action_mask"][:] = mask
            buffer = buffer["observations"]
        self._observation.write(states, buffer)
        return mask.view(np.int8)

    def masks(self, states: State) -> NDArray[np.bool_]:
        """The masks of states ``(n, state_size)``, bool ``(n, num_actions)``."""
        mask = np.empty((states.shape[0], self.world.num_actions), np.bool_)
        return self._mask(self.world, states, mask)


def followed(actions: NDArray[np.int32], masks: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The actions that are taken: where a mask forbids void, the first inside for one outside.

    Actions are int32 ``(n,)``, masks bool ``(n, num_actions)``. Actions of another type would have
    simulators compiled once more.
    """
    rows = np.arange(actions.size)
    first = masks.argmax(axis=1).astype(np.int32)
    return np.where(masks[:, -1] | masks[rows, actions], actions, first)


def one_of(batch: Any, index: int) -> Any:
    """Takes one observation out of a batch; arrays in it are views."""
    if isinstance(batch, dict):
        return {key: one_of(part, index) for key, part in batch.items()}
    return batch[index]
