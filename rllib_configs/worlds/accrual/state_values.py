"""Values of server states as a network: what servers have learned decides by the mean of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.policy import NOT_ALLOWED
from cluster_env.core.world import World
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.features import CONTEXT, ITEM
from cluster_env.worlds.accrual.values import (
    RULEBASE,
    VALUE_FUNCTIONS,
    mean_values,
    num_parameters,
)
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.networks.sampling import Draws
from rllib_configs.worlds.accrual.options import FuzzyTDOptions, StateValuesOptions


class StateValuesSampler:
    """Takes the candidate of the highest value, if that is above the server's own; no draw.

    Logits are values minus that of the server as it is, which is void's.

    Args:
        kind: of the value functions, index in `VALUE_FUNCTIONS`.
        values: float32 ``(num_servers, num_parameters)``.
        world: where it acts.
    """

    def __init__(self, kind: int, values: NDArray[np.float32], world: Accrual) -> None:
        parameters = values.astype(np.float64)
        if kind == RULEBASE:  # linear in them
            parameters = parameters.mean(axis=0, keepdims=True)
        self._kind, self._parameters, self._world = kind, parameters, world

    def logits(self, states: NDArray[np.int32]) -> NDArray[np.float32]:
        """See `rllib_configs.networks.sampling.Sampler`."""
        seen = self._world.features(states)
        # x1, x2 and x3 stand beside each other in both.
        of_candidates = seen.items[:, :, ITEM.unit_utility : ITEM.idle + 1]
        of_machine = seen.context[:, None, CONTEXT.unit_utility : CONTEXT.idle + 1]
        x = np.concatenate([of_candidates, of_machine], axis=1)
        values = np.empty(x.shape[:2])
        mean_values(self._kind, self._parameters, x.reshape(-1, 3), values.reshape(-1))
        gains = (values - values[:, -1:]).astype(np.float32)
        # A candidate that is worth as much as the server itself is not taken.
        gains[:, :-1][gains[:, :-1] == 0] = -np.finfo(np.float32).tiny
        return np.where(seen.allowed, gains, NOT_ALLOWED)

    def sample(self, states: NDArray[np.int32], uniforms: NDArray[np.float64]) -> Draws:
        """See `rllib_configs.networks.sampling.Sampler`; the action is certain."""
        actions = self.logits(states).argmax(axis=1).astype(np.int32)
        return actions, np.zeros(actions.size, np.float32)


def value_kind(experiment: ExperimentConfig) -> int:
    """Index of an experiment's value function in `VALUE_FUNCTIONS`."""
    return VALUE_FUNCTIONS.index(experiment.training.values)


def prepare(experiment: ExperimentConfig) -> ExperimentConfig:
    """Makes sure that there are values to learn, servers, and utility to learn from.

    Raises:
        InputError: if the network or the world is another one, or the objective.
    """
    if not isinstance(experiment.training, StateValuesOptions):
        raise InputError(
            f"the algorithm fuzzy_td learns values of states, so it needs training.network="
            f"state_values, but {experiment.training.network} was given"
        )
    world = _require_accrual(experiment.task.world)
    if not (world.preempt or world.squeeze):
        raise InputError(
            "the algorithm fuzzy_td learns when to preempt and squeeze, but task.world.preempt "
            "and task.world.squeeze are false"
        )
    if experiment.task.objective != "utility":
        raise InputError(
            f"the algorithm fuzzy_td learns from utility alone, but task.objective is "
            f"{experiment.task.objective}"
        )
    return experiment


def _require_accrual(world: World) -> Accrual:
    return require_kind(world, Accrual, "the network state_values values servers")


def _num_functions(experiment: ExperimentConfig) -> int:
    """Each machine that learned has values of its own, wherever they act."""
    world = _require_accrual(experiment.task.world)
    return int(experiment.training.jobsets) * world.num_learners


class StateValuesNetwork(Network):
    """Values of states as a network, which the algorithm fuzzy_td trains."""

    module_place = "rllib_configs.worlds.accrual.module:StateValuesModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """World, value function, number of servers and seed.

        Raises:
            InputError: if another algorithm is to train it.
        """
        if not isinstance(experiment.training, FuzzyTDOptions):
            raise InputError(
                f"the network state_values is learned by the algorithm fuzzy_td alone, not by "
                f"{experiment.training.algorithm}; take the network set_scorer"
            )
        return {
            "world": _require_accrual(world),
            "kind": value_kind(experiment),
            "servers": _num_functions(experiment),
            "seed": experiment.seed,
        }

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> StateValuesSampler:
        """See `StateValuesSampler`."""
        kind = value_kind(experiment)
        return StateValuesSampler(kind, weights["values"], _require_accrual(world))

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Parameters of all value functions."""
        _require_accrual(world)
        return {"values": (_num_functions(experiment), num_parameters(value_kind(experiment)))}


NETWORK = StateValuesNetwork()
