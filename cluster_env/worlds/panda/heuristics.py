"""Rules that nobody trained: central schedulers, which know all nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.core.spec import Heuristic
from cluster_env.objectives import Objective
from cluster_env.worlds.panda.simulator import PandaSimulator


@dataclass(frozen=True)
class PandaPolicy:
    """A rule as a policy, which gives nodes to one consumer after the other.

    It decides by the whole cloud. A state shows an agent some of the nodes, and an agent can catch
    no node that another one still holds; so there is no action of agents that does what a rule
    does. `choose` has the simulator decide by the rule in place of all agents.
    """

    name: str
    choice: str  # one of `cluster_env.worlds.panda.allocation.CHOICES`
    order: str  # one of `ORDERS` there

    def play(self, simulator: PandaSimulator, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`."""
        simulator.play((self.choice, self.order), keys)

    def choose(
        self, simulator: PandaSimulator, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """Leaves the decision of all agents to the rule; see `PandaSimulator.rule_action`.

        Raises:
            InputError: for a rule that draws: it does so by the keys of whole episodes.
        """
        if self.choice == "random":
            raise InputError(
                f"'{self.name}' draws random numbers from the keys of whole episodes, which "
                "a single decision does not have; use cluster_env.evaluation.evaluate"
            )
        return np.full(rows.size, simulator.rule_action((self.choice, self.order)), np.int32)

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """A state does not show what a rule decides by; an `InputError` says what to use."""
        raise InputError(
            f"'{self.name}' needs all nodes and decides for all consumers at once, but a "
            "state shows an agent only a part of them; use cluster_env.core.policy.choose "
            "with a simulator, or cluster_env.evaluation.evaluate for whole episodes"
        )


@dataclass(frozen=True)
class WeightedPolicy(PandaPolicy):
    """Best fit, those first that cost most for each step that they have left to do.

    On alike nodes, no other order of two that wait costs less (Smith's rule). It is no heuristic
    that can be named, but a bound: it reads the costs of consumers, which no state shows.
    """

    objective: Objective  # what `cluster_env.evaluation.evaluate` loads its simulators with


def weighted_policy(objective: Objective) -> WeightedPolicy:
    """The one for an objective."""
    return WeightedPolicy("weighted_shortest_fit", "best_fit", "weighted", objective)


HEURISTICS: Registry[Heuristic] = Registry("heuristic")


def _register(name: str, choice: str, order: str) -> None:
    policy = PandaPolicy(name, choice, order)
    HEURISTICS.register(name)(Heuristic.unnumbered(name, lambda world: policy))


_register("best_fit", "best_fit", "arrival")
_register("fastest_fit", "fastest_fit", "arrival")
_register("shortest_fit", "best_fit", "shortest")
_register("shortest_fastest", "fastest_fit", "shortest")
_register("random", "random", "arrival")
_register("earliest_finish", "earliest_finish", "arrival")
_register("envy_free", "envy_free", "arrival")
