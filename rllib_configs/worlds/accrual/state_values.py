"""Values of server states as a network: what servers have learned decides by the mean of them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.world import World
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.values import RULEBASE, VALUE_FUNCTIONS, mean_values, num_parameters
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.worlds.accrual.options import FuzzyTDOptions, StateValuesOptions

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig

_FORBIDDEN = np.float32(-1e9)


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
        x = np.concatenate([seen.items[:, :, 1:4], seen.context[:, None, :3]], axis=1)
        values = np.empty(x.shape[:2])
        mean_values(self._kind, self._parameters, x.reshape(-1, 3), values.reshape(-1))
        gains = (values - values[:, -1:]).astype(np.float32)
        # A candidate that is worth as much as the server itself is not taken.
        gains[:, :-1][gains[:, :-1] == 0] = -np.finfo(np.float32).tiny
        found: NDArray[np.float32] = np.where(seen.allowed, gains, _FORBIDDEN)
        return found

    def sample(
        self, states: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `rllib_configs.networks.sampling.Sampler`; the action is certain."""
        actions = self.logits(states).argmax(axis=1).astype(np.int32)
        return actions, np.zeros(actions.size, np.float32)


def value_kind(experiment: "ExperimentConfig") -> int:
    """Index of an experiment's value function in `VALUE_FUNCTIONS`."""
    return VALUE_FUNCTIONS.index(experiment.training.values)


def prepare(experiment: "ExperimentConfig") -> "ExperimentConfig":
    """Makes sure that there are values to learn, servers, and utility to learn from.

    Raises:
        InputError: if the network or the world is another one, or the objective.
    """
    if not isinstance(experiment.training, StateValuesOptions):
        raise InputError(
            f"the algorithm fuzzy_td learns values of states, so it needs training.network="
            f"state_values, but {experiment.training.network} was given"
        )
    world = _require_accrual(experiment.task.build_world())
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


def _module() -> "type[TorchRLModule]":
    from rllib_configs.worlds.accrual.module import StateValuesModule

    return StateValuesModule


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    if not isinstance(experiment.training, FuzzyTDOptions):
        raise InputError(
            f"the network state_values is learned by the algorithm fuzzy_td alone, not by "
            f"{experiment.training.algorithm}; take the network set_scorer"
        )
    return {
        "world": _require_accrual(world),
        "kind": value_kind(experiment),
        "servers": experiment.training.jobsets,
        "seed": experiment.seed,
    }


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> StateValuesSampler:
    return StateValuesSampler(value_kind(experiment), weights["values"], _require_accrual(world))


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    _require_accrual(world)
    return {"values": (experiment.training.jobsets, num_parameters(value_kind(experiment)))}


NETWORK = Network(_module, _model_config, _sampler, _shapes)
