"""The policy advisor in the registry of networks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.world import World
from meta.panda.advisor import build_advisor
from meta.panda.sampler import AdvisedSampler
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import Network, Shapes, Weights

_DRAWING_NOTHING = ("evolution", "offline")  # algorithms that learn from what is likeliest


def begin_as_shared(
    source: ExperimentConfig, trained: Weights, config: ExperimentConfig, own: Weights
) -> dict[str, NDArray[np.float32]]:
    """Weights that begin as a shared actor that is trained: the advisor adds nothing to it yet.

    Raises:
        InputError: if that policy has other actors, or another advisor.
    """
    needed = {"network.shared"} if source.training.advisor == "none" else {*own, *trained}
    shapes = [{name: of[name].shape for name in needed & set(of)} for of in (trained, own)]
    if shapes[0] != shapes[1]:
        raise InputError(
            "training.start needs a policy with the same training.actor, advisor, hidden, "
            "classes and units, or one without an advisor whose actors are the same"
        )
    # Without an advisor there: its last layer begins at 0, so that it adds nothing yet.
    begun = {name: trained.get(name, value) for name, value in own.items()}
    if "network.made" not in trained and "network.made" in own:
        begun["network.made"] = np.zeros_like(own["network.made"])
    return begun


class AdvisorNetwork(Network):
    """The policy advisor as a network."""

    module_place = "meta.panda.module:AdvisorModule"
    transfers = ("observed", "held")
    fixed = ("network.tree_statistics", "network.tree_parent", "network.tree_model")

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """Experiment and world."""
        return {"experiment": experiment, "world": world}

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> AdvisedSampler:
        """See `AdvisedSampler`."""
        draws = experiment.training.algorithm not in _DRAWING_NOTHING
        return AdvisedSampler(build_advisor(experiment, world), weights, world, draws)

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Those of the advisor."""
        state = build_advisor(experiment, world).state_dict()
        return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


NETWORK = AdvisorNetwork()
