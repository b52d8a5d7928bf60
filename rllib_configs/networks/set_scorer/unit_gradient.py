"""The gradient of PPO's loss by a set scorer's parameters, on rows that stay where they are."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import Features, State, World
from rllib_configs.networks.set_scorer.autograd import PARAMETERS, pack
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyGradient, PolicyLoss

Vector = NDArray[np.float32]


class UnitGradient:
    """Compiled, without a graph; see `PolicyGradient`. A critic's part is not computed.

    Args:
        network: tells the shapes; its own parameters are not used.
        world: tells the features of states.
    """

    def __init__(self, network: SetScorer, world: World) -> None:
        self._network, self._world = network, world
        width, context_size = network.context.weight.shape
        item_size = network.job.weight.shape[1]
        self._gradient = PolicyGradient(context_size, world.num_actions - 1, item_size, width)
        self._places = _places(network)
        self._weights: Vector

    def set_parameters(self, parameters: Vector) -> None:
        """Takes the network's parameters, float32 ``(num_learned,)``, in its own order."""
        self._weights = np.zeros(self._places.size + self._unused, np.float32)
        self._weights[self._places] = parameters

    def show(self, states: State) -> Features:
        """What the network sees of states, which does not change with its parameters."""
        return self._network.shown(self._world.features(states))

    def __call__(
        self,
        shown: Features,
        actions: NDArray[np.int32],
        log_probabilities: Vector,
        advantages: Vector,
        loss: PolicyLoss,
    ) -> tuple[Vector, float]:
        """Differentiates the mean of a loss over rows.

        Args:
            shown: features of n states, see `show`.
            actions: int32 ``(n,)``.
            log_probabilities: float32 ``(n,)``, under the policy that chose the actions.
            advantages: float32 ``(n,)``.
            loss: what of.

        Returns:
            float32 ``(num_learned,)``, as `take`, and the mean entropy in nats.
        """
        bounds = np.array([0, actions.size])
        choices = Choices(shown, actions, log_probabilities, advantages, bounds)
        found, entropy = self._gradient(self._weights, choices, loss)
        gradient: Vector = found[0][self._places]
        return gradient, entropy

    @property
    def _unused(self) -> int:
        """Weights of a skip connection that is not there."""
        if self._network.skip_names:
            return 0
        return int(self._network.job.weight.shape[1])


def _places(network: SetScorer) -> NDArray[np.int64]:
    """Where compiled code has each parameter of a network, int64 ``(num_learned,)``."""
    numbered: dict[str, Vector] = {}
    first = 1  # 0 marks what no parameter fills
    for name, parameter in network.named_parameters():
        numbers = np.arange(first, first + parameter.numel(), dtype=np.float32)
        numbered[name] = numbers.reshape(tuple(parameter.shape))
        first += parameter.numel()
    if first > 1 << 24:
        raise ValueError("a network of more than 16 million parameters is not for this")
    packed = pack(_in_order(numbered, network)).view(np.float32).reshape(-1)
    filled = np.flatnonzero(packed)
    places = np.empty(first - 1, np.int64)
    places[packed[filled].astype(np.int64) - 1] = filled
    return places


def _in_order(numbered: Mapping[str, Vector], network: SetScorer) -> list[Vector]:
    """Parameters by name as `pack` takes them."""
    skip = [numbered[name] for name in network.skip_names]
    found = [numbered[name] for name in PARAMETERS]
    return [*found, np.concatenate(skip)] if skip else found
