"""The rules by name: ``none``, ``aggressive:both``, ``rulebase:squeeze``, ``dasa``."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.spec import Heuristic
from cluster_env.worlds.accrual.orders import ORDERS
from cluster_env.worlds.accrual.rules import SCORERS, Rule, choose_actions
from cluster_env.worlds.accrual.simulator import AccrualSimulator
from cluster_env.worlds.accrual.td import new_learners
from cluster_env.worlds.accrual.values import PAPER_RULEBASE, VALUE_FUNCTIONS
from cluster_env.worlds.accrual.world import Accrual

COLUMNS = {"squeeze": (False, True), "preempt": (True, False), "both": (True, True)}
"""Columns of figures 2 and 3: whether a rule preempts, and whether it squeezes."""


@dataclass(frozen=True)
class AccrualPolicy:
    """A rule as a policy, with the parameters of the values that it may go by.

    The order in which fitting jobs start is no action: `act` leaves it to the simulator, whose
    order is best fit, while `play` and `choose` have the simulator start jobs in the rule's own.
    """

    world: Accrual
    name: str
    rule: Rule
    values: str = "rulebase"  # or "network"
    parameters: tuple[float, ...] = PAPER_RULEBASE

    def play(self, simulator: AccrualSimulator, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`."""
        learners = new_learners(self._kind, self._p[None], 0.0, 0.0, 1.0, False)
        simulator.play(self.rule, keys, learners=learners)

    def act(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.Policy.act`."""
        require_states(states, self.world.state_space)
        actions = np.empty(states.shape[0], np.int32)
        choose_actions(
            self.rule.restrict(self.world.options),
            SCORERS.index(self.rule.scorer),
            self._kind,
            self._p,
            np.ascontiguousarray(states),
            actions,
        )
        return actions

    def choose(
        self, simulator: AccrualSimulator, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.ChoosingPolicy`."""
        simulator.start_in_order(rows, self.rule.order)
        return self.act(simulator.states[rows], uniforms)

    @property
    def _kind(self) -> int:
        return VALUE_FUNCTIONS.index(self.values)

    @property
    def _p(self) -> NDArray[np.float64]:
        return np.array(self.parameters, np.float64)


HEURISTICS: Registry[Heuristic] = Registry("heuristic")


def _ordered(name: str, order: str) -> Heuristic:
    return Heuristic.unnumbered(name, lambda world: AccrualPolicy(world, name, Rule(order, "none")))


def _deciding(name: str, scorer: str) -> Callable[[Accrual, str], Policy]:
    def make(world: Accrual, argument: str) -> Policy:
        column = argument or "both"
        if column not in COLUMNS:
            raise unknown(f"word after '{name}:'", column, COLUMNS)
        preempt, squeeze = COLUMNS[column]
        for option, needed in (("preempt", preempt), ("squeeze", squeeze)):
            if needed and argument and not getattr(world, option):
                raise InputError(f"'{name}:{argument}' needs a world with {option}=true")
        rule = Rule("best_fit", scorer, preempt, squeeze)
        return AccrualPolicy(world, f"{name}:{argument}" if argument else name, rule)

    return make


HEURISTICS.register("none")(_ordered("none", "best_fit"))
HEURISTICS.register("aggressive")(
    Heuristic(_deciding("aggressive", "aggressive"), numbers=tuple(COLUMNS))
)
HEURISTICS.register("rulebase")(Heuristic(_deciding("rulebase", "value")))
for _order in ORDERS[1:]:
    HEURISTICS.register(_order)(_ordered(_order, _order))
