"""The policy advisor in the registry of networks."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.world import World
from meta.panda.advisor import build_advisor
from meta.panda.sampler import AdvisedSampler
from rllib_configs.networks.registry import Network, Shapes, Weights

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig

_DRAWING_NOTHING = ("evolution", "offline")  # algorithms that learn from what is likeliest


def begin_as_shared(
    source: "ExperimentConfig", trained: Weights, config: "ExperimentConfig", own: Weights
) -> dict[str, NDArray[np.float32]]:
    """Weights that begin as a shared actor that is trained: the advisor adds nothing to it yet.

    Raises:
        InputError: if that policy has other actors, or another advisor.
    """
    needed = {"network.shared"} if source.training.advisor == "none" else {*own, *trained}
    shapes = [{name: of[name].shape for name in needed & set(of)} for of in (trained, own)]
    if shapes[0] != shapes[1]:
        raise InputError(
            "agents can begin as others whose training.actor, advisor, hidden, classes and units "
            "are the same, or as some without an advisor whose actors are the same"
        )
    # Without an advisor there: its last layer begins at 0, so that it adds nothing yet.
    begun = {name: trained.get(name, value) for name, value in own.items()}
    if "network.made" not in trained and "network.made" in own:
        begun["network.made"] = np.zeros_like(own["network.made"])
    return begun


def _module() -> "type[TorchRLModule]":
    from meta.panda.module import AdvisorModule

    return AdvisorModule


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    return {"experiment": experiment, "world": world}


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> AdvisedSampler:
    draws = experiment.training.algorithm not in _DRAWING_NOTHING
    return AdvisedSampler(build_advisor(experiment, world), weights, world, draws)


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    state = build_advisor(experiment, world).state_dict()
    return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


NETWORK = Network(
    _module,
    _model_config,
    _sampler,
    _shapes,
    transfers=("observed", "held"),
    fixed=("network.tree_statistics", "network.tree_parent", "network.tree_model"),
)
