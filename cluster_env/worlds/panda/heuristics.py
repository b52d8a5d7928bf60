"""Rules that nobody trained; central ones, which know all nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry
from cluster_env.core.spec import Heuristic, no_argument
from cluster_env.worlds.panda.picking import BEST_FIT, FASTEST, RANDOM
from cluster_env.worlds.panda.simulator import PandaSimulator
from cluster_env.worlds.panda.world import Panda


@dataclass(frozen=True)
class PandaPolicy:
    """A rule as a policy.

    A simulator plays it as a central scheduler, which gives nodes to one consumer after the other
    (`play`). Decision by decision (`act`) every agent follows it by itself, by what it sees: it
    catches what it would pick, and agents collide.

    Attributes:
        world: what it acts in.
        name: what tables call it.
        choice: how nodes are chosen, one of `cluster_env.worlds.panda.play.CHOICES`.
        order: in which order consumers get their turn, one of `ORDERS` there.
        how: how agents pick by themselves, see `cluster_env.worlds.panda.picking`.
    """

    world: Panda
    name: str
    choice: str
    order: str
    how: int

    def play(self, simulator: PandaSimulator, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`."""
        simulator.play((self.choice, self.order), keys)

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """Rows of zeros and ones, int32 ``(n, observed + held + 1)``; see `Panda`."""
        return self.world.ruled(states, self.how, uniforms).astype(np.int32)


HEURISTICS: Registry[Heuristic] = Registry("heuristic")


def _enter(name: str, choice: str, order: str, how: int) -> None:
    def make(world: Panda, argument: str) -> Policy:
        no_argument(name, argument)
        return PandaPolicy(world, name, choice, order, how)

    HEURISTICS.register(name)(Heuristic(make))


_enter("best_fit", "best_fit", "arrival", BEST_FIT)
_enter("fastest_fit", "fastest_fit", "arrival", FASTEST)
_enter("shortest_fit", "best_fit", "shortest", BEST_FIT)
_enter("shortest_fastest", "fastest_fit", "shortest", FASTEST)
_enter("random", "random", "arrival", RANDOM)
_enter("earliest_finish", "earliest_finish", "arrival", FASTEST)
_enter("envy_free", "envy_free", "arrival", BEST_FIT)
