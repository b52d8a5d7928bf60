"""What the simulators ask of a scheduler, trained or not."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Policy(Protocol):
    """Chooses an action for each of a batch of states; it keeps nothing between calls."""

    @property
    def name(self) -> str:
        """Name in tables and figures."""

    def act(self, states: NDArray[Any], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """Chooses.

        Args:
            states: ``(n, state_size)``, of the world.
            uniforms: float64 ``(n,)`` in [0, 1), the only randomness a policy may use.

        Returns:
            int32 ``(n,)``: a slot, or ``num_slots`` for void.
        """


@runtime_checkable
class PlayedPolicy(Policy, Protocol):
    """A policy whose whole episodes a simulator can play by itself.

    That is the fast path of rules: no decision leaves compiled code, and they see all of the queue
    where a state of fixed size shows a part.
    """

    def play(self, simulator: Any, keys: NDArray[np.uint64]) -> None:
        """Plays all episodes that are loaded to their ends.

        Args:
            simulator: of the policy's world.
            keys: uint64 ``(num_rows,)``, keys of the episodes' random numbers, see
                `cluster_env.core.seeding.episode_keys`.
        """
