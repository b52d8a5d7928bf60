"""Acts with actors that an advisor has made, without RLlib and gradients."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.seeding import uniforms as drawn_uniforms
from cluster_env.core.world import State, World
from meta.panda.actors import Actors
from meta.panda.advisor import PolicyAdvisor
from meta.panda.plans import PlanShape
from rllib_configs.networks.registry import Weights
from rllib_configs.worlds.panda.plans import PAIR, decide_by_plans, proposals

STEPS = 1000
"""How finely the mean urgency of actors is told apart that draw nothing."""


def logits_of(network: PolicyAdvisor, world: Any, states: State) -> torch.Tensor:
    """What a network makes of states; see `PolicyAdvisor.forward`."""
    features = world.features(states)
    if isinstance(network.shape, PlanShape):
        found: torch.Tensor = network(features, proposals(states, world.observed + world.held))
        return found
    alone: torch.Tensor = network(features)
    return alone


class AdvisedSampler:
    """See `rllib_configs.networks.sampling.Sampler`.

    Args:
        network: takes the weights.
        weights: by name, as the RLModule has them.
        world: where it acts.
        draws: whether `sample` draws; searches and records know nothing but what is likeliest.
    """

    def __init__(
        self, network: PolicyAdvisor, weights: Weights, world: World, draws: bool = True
    ) -> None:
        state = {
            name.removeprefix("network."): torch.from_numpy(np.array(value))
            for name, value in weights.items()
        }
        network.load_state_dict(state)
        self.network, self._draws = network.eval(), draws
        self._world: Any = world
        self._actors = Actors(network, world)

    def logits(self, states: State) -> NDArray[np.float32]:
        """See `meta.panda.advisor.actor_logits`, float32."""
        with torch.inference_mode():
            found: NDArray[np.float32] = logits_of(self.network, self._world, states).numpy()
        return found

    def sample(
        self, states: State, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Draws each bit by itself from the softmax of its logit and 0, and one level of urgency.

        Returns:
            Actions, int32 ``(n, num_actions)``: 0, or 1 plus the level; and log-probabilities,
            float32 ``(n,)``, in which the level counts where something is done.
        """
        if not self._draws:
            return self.likeliest(states), np.zeros(len(states), np.float32)
        logits, num_actions = self.logits(states).astype(np.float64), self._world.num_actions
        bits, levels = logits[:, :num_actions], logits[:, num_actions:]
        keys = (uniforms * 2.0**53).astype(np.uint64)
        drawn = np.stack([drawn_uniforms(keys, bit) for bit in range(num_actions + 1)], axis=1)
        lost = np.logaddexp(0.0, -bits)  # minus the logarithm of the probability of a one
        taken = np.log1p(-drawn[:, :-1]) < -lost
        log_levels = levels - np.logaddexp.reduce(levels, axis=1, keepdims=True)
        below = np.exp(log_levels).cumsum(axis=1)[:, :-1]
        level = (drawn[:, -1:] >= below).sum(axis=1)
        log_probabilities = -np.where(taken, lost, np.logaddexp(0.0, bits)).sum(axis=1)
        open_rows = taken.any(axis=1)
        log_probabilities[open_rows] += log_levels[open_rows, level[open_rows]]
        actions = taken * (1 + level[:, None])
        return actions.astype(np.int32), log_probabilities.astype(np.float32)

    def likeliest(self, states: State, void_bias: float = 0.0) -> NDArray[np.int32]:
        """What is more likely done than not, with the mean urgency, int32 ``(n, num_actions)``.

        Args:
            states: ``(n, state_size)``.
            void_bias: added to the logit of waiting.
        """
        if isinstance(self.network.shape, PlanShape):
            return self._by_plans(states, void_bias)
        logits, num_actions = self.logits(states).astype(np.float64), self._world.num_actions
        logits[:, num_actions - 1] += void_bias
        levels = logits[:, num_actions:]
        chance = np.exp(levels - np.logaddexp.reduce(levels, axis=1, keepdims=True))
        mean = np.rint(STEPS * (chance @ np.arange(levels.shape[1])))[:, None]
        return ((logits[:, :num_actions] > 0) * (1 + mean)).astype(np.int32)

    def _by_plans(self, states: State, bias: float) -> NDArray[np.int32]:
        """Decides in compiled code; see `Actors`."""
        world = self._world
        bits = np.empty((len(states), world.num_actions), np.int32)
        decide_by_plans(
            *(np.ascontiguousarray(states), self._actors.of(states), self._actors.thetas),
            *(world.observed, world.held, bias, np.empty(len(PAIR)), bits),
        )
        return bits
