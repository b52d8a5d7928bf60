"""What acts with values of server states."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.features import CONTEXT, ITEM
from cluster_env.worlds.accrual.values import RULEBASE, mean_values

_FORBIDDEN = np.float32(-1e9)


class StateValuesSampler:
    """Takes the candidate of the highest value, if that is above the server's own; no draw.

    Logits are values minus that of the server as it is, which is void's.

    Args:
        kind: of the value functions, index in `VALUE_FUNCTIONS`.
        values: float32 ``(num_servers, num_parameters)``.
        world: where it acts.
    """

    def __init__(self, kind: int, values: NDArray[np.float32], world: Accrual) -> None:
        parameters = values.astype(np.float64)
        if kind == RULEBASE:  # linear in them
            parameters = parameters.mean(axis=0, keepdims=True)
        self._kind, self._parameters, self._world = kind, parameters, world

    def logits(self, states: NDArray[np.int32]) -> NDArray[np.float32]:
        """See `rllib_configs.networks.sampling.Sampler`."""
        seen = self._world.features(states)
        # x1, x2 and x3 stand beside each other in both.
        of_candidates = seen.items[:, :, ITEM.unit_utility : ITEM.idle + 1]
        of_machine = seen.context[:, None, CONTEXT.unit_utility : CONTEXT.idle + 1]
        x = np.concatenate([of_candidates, of_machine], axis=1)
        values = np.empty(x.shape[:2])
        mean_values(self._kind, self._parameters, x.reshape(-1, 3), values.reshape(-1))
        gains = (values - values[:, -1:]).astype(np.float32)
        # A candidate that is worth as much as the server itself is not taken.
        gains[:, :-1][gains[:, :-1] == 0] = -np.finfo(np.float32).tiny
        found: NDArray[np.float32] = np.where(seen.allowed, gains, _FORBIDDEN)
        return found

    def sample(
        self, states: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `rllib_configs.networks.sampling.Sampler`; the action is certain."""
        actions = self.logits(states).argmax(axis=1).astype(np.int32)
        return actions, np.zeros(actions.size, np.float32)
