"""The rules by name: ``fifo``, ``fair``, ``weighted_fair:-1``, ``sjf_cp``."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry
from cluster_env.core.spec import Heuristic
from cluster_env.worlds.graphs.rules import CONTEXT, Rule
from cluster_env.worlds.graphs.simulator import GraphsSimulator
from cluster_env.worlds.graphs.state import NUM_WEIGHTS
from cluster_env.worlds.graphs.world import Graphs

EXPONENTS = tuple(f"{k / 10:g}" for k in range(-20, 21, 2))
"""Exponents of weighted fair shares that are tried, as Decima tried them from -2 to 2."""


@dataclass(frozen=True)
class GraphsPolicy:
    """A rule as a policy. It sees all jobs, where a state shows a part of them."""

    world: Graphs
    name: str
    rule: Rule

    def play(self, simulator: GraphsSimulator, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`; nothing is random."""
        simulator.play(self.rule)

    def choose(
        self, simulator: GraphsSimulator, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.ChoosingPolicy`."""
        return simulator.choose(self.rule, rows)

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """Rules decide by more than a state shows.

        Raises:
            InputError: always.
        """
        require_states(states, self.world.state_space)
        raise InputError(f"'{self.name}' decides by all jobs, so it asks the simulator: `choose`")


def _weighted(world: Graphs, argument: str) -> Policy:
    name = f"weighted_fair:{argument}" if argument else "weighted_fair"
    try:
        exponent = float(argument or "-1")
    except ValueError:
        exponent = math.nan
    if not -10 <= exponent <= 10:
        raise InputError(
            f"weighted_fair:E needs an exponent from -10 to 10, not '{shortened(argument)}'"
        )
    weights = np.zeros((len(CONTEXT), NUM_WEIGHTS))
    weights[0, 0] = exponent
    return GraphsPolicy(world, name, Rule("weighted_fair", weights))


def _plain(name: str) -> Heuristic:
    return Heuristic.unnumbered(name, lambda world: GraphsPolicy(world, name, Rule(name)))


HEURISTICS: Registry[Heuristic] = Registry(
    "heuristic",
    {
        **{name: _plain(name) for name in ("fifo", "fair", "sjf_cp")},
        "weighted_fair": Heuristic(_weighted, EXPONENTS),
    },
)
"""``fifo``: the job that came first gets what it can take. ``fair``: equal shares of the executors.
``weighted_fair:E``: shares by the E-th power of work. ``sjf_cp``: the job of the least work gets
what it can take, for its longest path first."""
