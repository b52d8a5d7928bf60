"""What the simulators ask of a scheduler, trained or not."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Policy(Protocol):
    """Chooses an action for each of a batch of states; it keeps nothing between calls."""

    @property
    def name(self) -> str:
        """Name in tables and figures."""

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """Chooses.

        Args:
            states: uint8 ``(n, state_size)``, of the world.
            uniforms: float64 ``(n,)`` in [0, 1), the only randomness a policy may use.

        Returns:
            int32 ``(n,)``: a slot, or ``num_slots`` for void.
        """
