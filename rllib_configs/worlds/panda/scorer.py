"""A central scheduler of 26 numbers, which gives nodes to the pair that scores highest.

It knows all consumers and all nodes, so it is the rival of agents that decide by themselves; a
search finds its numbers (`training.algorithm=evolution`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import World
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.features import PAIR, START
from cluster_env.worlds.panda.simulator import PandaSimulator
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.networks.sampling import Sampler


class PairScorer(Sampler):
    """Plays whole episodes; see `rllib_configs.policy_files.PlayedLearnedPolicy`.

    Args:
        weights: of the features of a pair, float32 ``(26,)``, see
            `cluster_env.worlds.panda.features.PAIR`.
    """

    def __init__(self, weights: NDArray[np.float32]) -> None:
        self._weights = weights.astype(np.float64)

    def play(self, simulator: PandaSimulator, void_bias: float) -> None:
        """Starts the best pair again and again, as long as it scores more than the bias."""
        weights = self._weights.copy()
        weights[PAIR.index("constant")] -= void_bias
        simulator.play(("scored", "arrival"), weights=weights)

    def logits(self, states: NDArray[np.int32]) -> NDArray[np.float32]:
        """A central scheduler has no decisions of single agents."""
        raise NotImplementedError("this network plays whole episodes")


class PairNetwork(Network):
    """The scorer as a network, which a search trains."""

    module_place = "rllib_configs.networks.modules:HeldWeights"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The weights that a search begins with."""
        self.shapes(experiment, world)
        start = np.array([START.get(name, 0.0) for name in PAIR], np.float32)
        return {"start": {"network.score": start}}

    def sampler(self, experiment: ExperimentConfig, weights: Weights, world: World) -> PairScorer:
        """See `PairScorer`."""
        return PairScorer(weights["network.score"])

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """A weight for each feature of a pair."""
        does = "the network pair_scorer scores consumers and nodes"
        require_kind(world, Panda, does, "set_scorer")
        return {"network.score": (len(PAIR),)}


NETWORK = PairNetwork()
