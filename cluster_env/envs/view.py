"""What a policy sees of a state: the observation and the action mask."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array
from numpy.typing import NDArray

from cluster_env.worlds.deeprm.observations import MASKS, OBSERVATIONS
from cluster_env.worlds.deeprm.rules import Rules
from cluster_env.worlds.deeprm.state import StateLayout


class View:
    """Computes observations and masks of many states at once.

    Args:
        layout: of the states.
        rules: of the simulator.
        observation: name of the observation.
        mask: name of the mask.
        mask_in_observation: whether observations are ``{"observations", "action_mask"}``, the
            names that RLlib's own masked modules look for.

    Raises:
        InputError: for an unknown name.
    """

    def __init__(
        self,
        layout: StateLayout,
        rules: Rules,
        observation: str,
        mask: str,
        mask_in_observation: bool,
    ) -> None:
        self.mask_name = mask
        self._layout = layout
        self._try_last_start = rules.try_last_start
        self._observation = OBSERVATIONS.get(observation)(layout, rules.try_last_start)
        self._mask = MASKS.get(mask)
        self._mask_in_observation = mask_in_observation
        self.action_space: spaces.Discrete[Any] = spaces.Discrete(layout.cluster.num_actions)
        self.observation_space = self._observation.space
        if mask_in_observation:
            mask_space = spaces.Box(0, 1, (layout.cluster.num_actions,), np.int8)
            self.observation_space = spaces.Dict(
                {"action_mask": mask_space, "observations": self._observation.space}
            )

    def buffer(self, num_states: int) -> Any:
        """Room for the observations of a number of states."""
        return create_empty_array(self.observation_space, num_states, np.zeros)

    def look(self, states: NDArray[np.uint8], buffer: Any) -> NDArray[np.int8]:
        """Fills a buffer with the observations of some states, and returns their masks.

        Args:
            states: uint8 ``(n, state_size)``.
            buffer: of n states.

        Returns:
            int8 ``(n, num_actions)`` of zeros and ones, as ``Discrete.sample`` wants it.
        """
        mask = self.masks(states)
        if self._mask_in_observation:
            buffer["action_mask"][:] = mask
            buffer = buffer["observations"]
        self._observation.write(states, buffer)
        return mask.view(np.int8)

    def masks(self, states: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """The masks of some states, bool ``(n, num_actions)``.

        Args:
            states: uint8 ``(n, state_size)``.
        """
        mask = np.empty((states.shape[0], self._layout.cluster.num_actions), np.bool_)
        return self._mask(states, self._layout, self._try_last_start, mask)


def one_of(batch: Any, index: int) -> Any:
    """Takes one observation out of a batch; arrays in it are views."""
    if isinstance(batch, dict):
        return {key: one_of(part, index) for key, part in batch.items()}
    return batch[index]
