"""The rules by name: ``saf``, ``saf:strict``, ``priority:conservative``."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.spec import Heuristic, no_argument
from cluster_env.core.world import PlayingSimulator
from cluster_env.worlds.hpc.acting import act_by_rule
from cluster_env.worlds.hpc.rules import BACKFILLING, ORDERS, PEER, Reserve, Rule
from cluster_env.worlds.hpc.world import HPC


@dataclass(frozen=True)
class RulePolicy:
    """A rule as a policy.

    Simulators play it (`play`); it then sees the whole queue. Decision by decision (`act`) it sees
    no more than a state shows, and comes close to itself: its order among the jobs that are seen,
    and a reservation for the oldest of them.

    Attributes:
        world: what it acts in.
        name: what tables call it.
        rule: the rule.
    """

    world: HPC
    name: str
    rule: Rule

    def play(self, simulator: PlayingSimulator, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`."""
        simulator.play(self.rule, keys)

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.Policy.act`."""
        return act_by_rule(self.rule, self.world, states, uniforms)


HEURISTICS: Registry[Heuristic] = Registry("heuristic")

_USUAL = {"srg": "packer"}  # order of an event loop that is named without one; else sjf


def _ordered(order: str) -> Callable[[HPC, str], Policy]:
    def make(world: HPC, argument: str) -> Policy:
        name = f"{order}:{argument}" if argument else order
        chosen = argument or world.backfilling
        if chosen not in BACKFILLING:
            raise unknown(f"kind of backfilling of '{order}:'", chosen, BACKFILLING)
        return RulePolicy(world, name, Rule(order, chosen, world.priority))

    return make


def _fixed(name: str, rule: Rule) -> Callable[[HPC, str], Policy]:
    def make(world: HPC, argument: str) -> Policy:
        no_argument(name, argument)
        return RulePolicy(world, name, rule)

    return make


def _like_a_peer(loop: str) -> Callable[[HPC, str], Policy]:
    def make(world: HPC, argument: str) -> Policy:
        name = f"{loop}:{argument}" if argument else loop
        order = argument or _USUAL.get(loop, "sjf")
        if order not in PEER[loop]:
            whose = "sched-rl-gym" if loop == "srg" else "RLScheduler"
            raise InputError(
                f"'{loop}:' needs one of {whose}'s orders, {', '.join(PEER[loop])}, not "
                f"'{argument}'"
            )
        return RulePolicy(world, name, Rule(order, loop))

    return make


for _order in ORDERS:
    HEURISTICS.register(_order)(Heuristic(_ordered(_order)))
for _order in ("saf", "wspt"):
    _name = f"{_order}-strict"
    HEURISTICS.register(_name)(Heuristic(_fixed(_name, Rule(_order, "strict"))))
HEURISTICS.register("reserve")(
    Heuristic(_fixed("reserve", Rule("wspt", "skip", reserve=Reserve())))
)

PEER_HEURISTICS = {name: Heuristic(_like_a_peer(name)) for name in PEER}
for _name, _heuristic in PEER_HEURISTICS.items():
    HEURISTICS.register(_name)(_heuristic)
