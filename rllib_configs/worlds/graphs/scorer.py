"""The linear scorer of stages as a network, which a search trains and simulators play."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import World
from cluster_env.worlds.graphs import Graphs
from cluster_env.worlds.graphs.rules import CONTEXT, PRIORITY, Rule
from cluster_env.worlds.graphs.simulator import GraphsSimulator
from cluster_env.worlds.graphs.state import NUM_WEIGHTS
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.networks.sampling import Sampler

SCORE, CONTEXTS = "network.score", "network.told_context"
START = {"log_left": 1.0, "ready": -1.0}
"""The job of the least work left first, within equal shares: what a search begins with."""


class StageScorer(Sampler):
    """Plays whole episodes, or chooses in one; see `cluster_env.worlds.graphs.rules`."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def play(self, simulator: GraphsSimulator, void_bias: float) -> None:
        """Plays whole episodes; a void bias changes nothing, because shares say who waits."""
        simulator.play(self._rule)

    def choose(
        self, simulator: GraphsSimulator, rows: NDArray[np.int32], void_bias: float
    ) -> NDArray[np.int32]:
        """The actions of `play` in some rows under way, int32 ``(m,)``."""
        return simulator.choose(self._rule, rows)

    def logits(self, states: NDArray[np.int32]) -> NDArray[np.float32]:
        """It sees all jobs, of which a state shows a part."""
        raise NotImplementedError("this network asks the simulator")


class StageScorerNetwork(Network):
    """See `StageScorer`."""

    module_place = "rllib_configs.networks.modules:HeldWeights"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The weights that a search begins with."""
        shapes = self.shapes(experiment, world)
        start = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        for name, weight in START.items():
            start[SCORE][PRIORITY.index(name)] = weight
        return {"start": start}

    def sampler(self, experiment: ExperimentConfig, weights: Weights, world: World) -> StageScorer:
        """See `StageScorer`."""
        rows = np.zeros((len(CONTEXT), NUM_WEIGHTS))
        rows[0] = weights[SCORE]
        if CONTEXTS in weights:
            rows[1:] = weights[CONTEXTS]
        return StageScorer(Rule("scorer", rows))

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """A weight for each feature, and for each in each context."""
        require_kind(world, Graphs, "the network stage_scorer scores stages", "set_scorer")
        sizes: dict[str, tuple[int, ...]] = {SCORE: (NUM_WEIGHTS,)}
        if experiment.training.in_context:
            sizes[CONTEXTS] = (len(CONTEXT) - 1, NUM_WEIGHTS)
        return sizes


NETWORK = StageScorerNetwork()
