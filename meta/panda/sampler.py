"""Acts with actors that an advisor has made, without RLlib and gradients."""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from cluster_env.core.seeding import uniforms as drawn_uniforms
from cluster_env.core.world import State, World
from cluster_env.worlds.panda.features import proposals
from cluster_env.worlds.panda.state import specification_columns
from cluster_env.worlds.panda.world import Panda
from meta.panda.actors import PlanShape
from meta.panda.advisor import TREES, PolicyAdvisor
from meta.panda.specifications import panda_of
from rllib_configs.networks.registry import Weights
from rllib_configs.worlds.panda.plans import decide_by_plans

STEPS = 1000
"""How finely the mean urgency of actors that draw nothing is distinguished."""
_MOST_INPUTS = 100_000

Inputs = dict[bytes, NDArray[np.float32]]


def logits_of(network: PolicyAdvisor, world: Panda, states: State) -> torch.Tensor:
    """What a network makes of states; see `PolicyAdvisor.forward`."""
    features, plans = world.features(states), None
    if isinstance(network.shape, PlanShape):
        plans = proposals(states, world.observed + world.held)
    logits: torch.Tensor = network(features, plans)
    return logits


class ActorCache:
    """The weights of actors, each computed once, when its specification is first seen."""

    def __init__(self, network: PolicyAdvisor, world: Panda) -> None:
        self._network, self._world = network, world
        self._advisor = {
            name: value.double().numpy() for name, value in network.state_dict().items()
        }
        self._place: dict[bytes, int] = {}  # of each specification in `weights`
        shared = self._advisor["shared"][None]
        self.weights = shared if network.kind == "none" else shared[:0]
        topology = b""
        if network.kind in TREES:
            names = ("tree_statistics", "tree_parent", "tree_model")
            topology = b"".join(self._advisor[name].tobytes() for name in names)
        # What an advisor sees does not depend on what a search changes: candidates see the same.
        self._inputs = self._inputs_of(world, topology)

    def places(self, states: State) -> NDArray[np.int64]:
        """Places in ``weights`` of the actors of some rows, int64 ``(n,)``; new ones are added."""
        if self._network.kind == "none":
            return np.zeros(len(states), np.int64)
        specs = specification_columns(states)
        keys = specs.view(np.dtype((np.void, specs.shape[1] * specs.itemsize)))[:, 0].tolist()
        new = {key: row for row, key in enumerate(keys) if key not in self._place}
        if new:
            count = len(self.weights)
            self._place.update(zip(new, range(count, count + len(new)), strict=True))
            self.weights = np.concatenate([self.weights, self._advise(states, new)])
        return np.array([self._place[key] for key in keys], np.int64)

    def _advise(self, states: State, new: dict[bytes, int]) -> NDArray[np.float64]:
        """Weights of new actors, by specification and row: `PolicyAdvisor.advise` in numpy."""
        if len(self._inputs) > _MOST_INPUTS:
            self._inputs.clear()
        # Look up, or compute, the specification as the advisor sees it, and the gates of the tree.
        unknown = [key for key in new if key not in self._inputs]
        if unknown:
            context = self._world.features(states[[new[key] for key in unknown]]).context
            parts = [torch.from_numpy(context)[:, self._network.columns]]
            if self._network.kind in TREES:
                parts.append(self._network.gates(parts[0]))
            self._inputs.update(zip(unknown, torch.cat(parts, dim=1).numpy(), strict=True))
        inputs = np.stack([self._inputs[key] for key in new]).astype(np.float64)
        # The layers of the advisor.
        first, bias, last = (self._advisor[name] for name in ("given", "bias", "made"))
        size = first.shape[0]
        units = np.maximum(inputs[:, :size] @ first + bias, 0.0)
        if self._network.kind in TREES:
            units *= np.repeat(inputs[:, size:], self._network.units, axis=1)
        return np.asarray(self._advisor["shared"] + (units @ last) * last.shape[0] ** -0.5)

    @staticmethod
    @lru_cache(maxsize=4)
    def _inputs_of(world: Panda, topology: bytes) -> Inputs:
        """What advisors with a topology have seen in a world, by specification."""
        return {}


class AdvisedSampler:
    """See `rllib_configs.networks.sampling.Sampler`.

    What a search and records have draws nothing: `sample` then takes what is likeliest.
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
        self._world = panda_of(world)
        self._actors = ActorCache(network, self._world)

    def logits(self, states: State) -> NDArray[np.float32]:
        """See the actors' `logits`, float32."""
        with torch.inference_mode():
            logits: NDArray[np.float32] = logits_of(self.network, self._world, states).numpy()
        return logits

    def sample(
        self, states: State, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Draws each bit by itself from the softmax of its logit and 0, and one level of urgency.

        Actions are int32 ``(n, num_actions)``: 0, or 1 plus the level. In the log-probabilities,
        float32 ``(n,)``, the level counts where something is done.
        """
        if not self._draws:
            return self.likeliest(states), np.zeros(len(states), np.float32)
        logits, num_actions = self.logits(states).astype(np.float64), self._world.num_actions
        bits, levels = logits[:, :num_actions], logits[:, num_actions:]
        # A random number for each bit, and one for the level, from the one of each row.
        keys = (uniforms * 2.0**53).astype(np.uint64)
        drawn = np.stack([drawn_uniforms(keys, bit) for bit in range(num_actions + 1)], axis=1)
        one = np.logaddexp(0.0, -bits)  # minus the logarithm of the probability of a one
        taken = np.log1p(-drawn[:, :-1]) < -one
        # The level comes from the inverse of its distribution function.
        log_levels = levels - np.logaddexp.reduce(levels, axis=1, keepdims=True)
        below = np.exp(log_levels).cumsum(axis=1)[:, :-1]
        level = (drawn[:, -1:] >= below).sum(axis=1)
        log_probabilities = -np.where(taken, one, np.logaddexp(0.0, bits)).sum(axis=1)
        acting = taken.any(axis=1)
        log_probabilities[acting] += log_levels[acting, level[acting]]
        actions = taken * (1 + level[:, None])
        return actions.astype(np.int32), log_probabilities.astype(np.float32)

    def likeliest(self, states: State, void_bias: float = 0.0) -> NDArray[np.int32]:
        """What is more likely done than not, with the mean urgency, int32 ``(n, num_actions)``.

        The bias is added to the logit of waiting.
        """
        if isinstance(self.network.shape, PlanShape):
            actor = self._actors.places(states)  # first, because it adds actors
            return decide_by_plans(self._world, states, actor, self._actors.weights, void_bias)
        logits, num_actions = self.logits(states).astype(np.float64), self._world.num_actions
        logits[:, num_actions - 1] += void_bias
        levels = logits[:, num_actions:]
        chance = np.exp(levels - np.logaddexp.reduce(levels, axis=1, keepdims=True))
        mean = np.rint(STEPS * (chance @ np.arange(levels.shape[1])))[:, None]
        return ((logits[:, :num_actions] > 0) * (1 + mean)).astype(np.int32)
