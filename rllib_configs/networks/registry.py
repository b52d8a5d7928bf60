"""Networks by name: what RLlib trains, and what acts with the weights that came out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.registry import imported
from cluster_env.core.world import World
from cluster_env.objectives import Objective
from rllib_configs.config.registries import NETWORKS
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.conditions import with_objective
from rllib_configs.networks.sampling import Sampler, SamplingPolicy

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.config.options import TrainingSection

Weights = Mapping[str, NDArray[np.float32]]
Shapes = Mapping[str, tuple[int, ...]]
FeatureNames = tuple[tuple[str, ...], tuple[str, ...]]  # of an item, of the context
W = TypeVar("W", bound=World)


class Network(ABC):
    """A network by name.

    Attributes:
        module_place: ``module:class`` of what RLlib trains, which only training imports.
        transfers: fields of the world in which it may meet another value than in training, beside
            those of the kind (`Training.transfers`); a network that has some may see states and
            features of other shapes.
        fixed: names of weights that nothing trains, such as a topology: a search leaves them as
            they are at its beginning.
    """

    module_place: ClassVar[str]
    transfers: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()

    def module(self) -> "type[TorchRLModule]":
        """What RLlib trains."""
        return cast("type[TorchRLModule]", imported(self.module_place))

    @abstractmethod
    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """What the module is built from, given the experiment and its world."""

    @abstractmethod
    def sampler(self, experiment: ExperimentConfig, weights: Weights, world: World) -> Sampler:
        """What samples with weights of this network, outside of RLlib.

        Args:
            experiment: what they were trained with.
            weights: of this network alone, by name.
            world: where it acts; it may differ from the experiment's.
        """

    @abstractmethod
    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Shapes of the weights by name, as the RLModule has them, in a world.

        What an algorithm keeps beside the network is not among them.
        """

    def scorer(
        self, training: "TrainingSection", feature_names: FeatureNames, seed: int | None = None
    ) -> Any:
        """The parameters that `meta` adapts, as a module of PyTorch, without a critic's.

        Args:
            training: settings of the network.
            feature_names: those of the world as the network sees it.
            seed: of the initial weights; None leaves them undefined.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be adapted")

    def scorer_sampler(
        self, training: "TrainingSection", weights: Weights, world: World
    ) -> SamplingPolicy:
        """What draws actions, so that their gradient can be estimated.

        Args:
            training: settings of the network.
            weights: those of `scorer` by their own names.
            world: as the network sees it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be adapted")

    def in_context(self, weights: Weights, context: NDArray[np.float64]) -> Weights:
        """Weights that act as these do in a context, which is the same in all states.

        They are those of `scorer` by their own names; the context is the last that they see.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be adapted")

    def widened(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> tuple[ExperimentConfig, Weights]:
        """Config and weights of the same policy with room for what it does not see of a world.

        A network without such room is what it was.
        """
        return experiment, weights


def make_sampler(
    experiment: ExperimentConfig,
    weights: Weights,
    world: World | None = None,
    objective: Objective | None = None,
) -> Sampler:
    """A sampler of an experiment's network.

    Args:
        experiment: what the weights were trained with.
        weights: by name, as the RLModule has them; an algorithm may keep more beside the network.
        world: where it acts, by default where it was trained. It may have other rules, and for a
            set scorer other capacities and another number of items: features are computed by it.
        objective: what counts there, for networks that are told; by default as in the experiment.

    Raises:
        InputError: if the weights are those of another network, or cannot be used in the world, or
            the network cannot be told of the objective.
    """
    experiment = with_objective(experiment, objective)
    network = network_of(experiment)
    acting = experiment.task.world if world is None else world
    expected = network.shapes(experiment, acting)
    require_shapes(weights, expected)
    return network.sampler(experiment, {name: weights[name] for name in expected}, acting)


def require_shapes(weights: Weights, expected: Shapes) -> None:
    """Makes sure that weights are those of a network.

    Raises:
        InputError: if some are missing or of another shape, or there are more of the network.
    """
    for name, shape in expected.items():
        if name not in weights:
            raise InputError(f"the network of its config has weights {name}, but it has none")
        if weights[name].shape != shape:
            raise InputError(
                f"its weights {name} have the shape {_text(weights[name].shape)}, but the network "
                f"of its config needs {_text(shape)}"
            )
    more = [name for name in weights if name.startswith("network.") and name not in expected]
    if more:
        raise InputError(f"it has weights {more[0]}, but the network of its config has none")


def _text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def require_kind(world: World, kind: type[W], does: str, instead: str = "") -> W:
    """The world, if a network can be used in it.

    Args:
        world: where it is to act.
        kind: of the only worlds that it knows.
        does: what it does there, as ``the network NAME scores jobs``.
        instead: network to take elsewhere; unset if there is none.

    Raises:
        InputError: if it is another world.
    """
    if not isinstance(world, kind):
        advice = f"; take the network {instead}" if instead else ""
        raise InputError(
            f"{does} of the world {kind.kind} alone, but the world is {world.kind}{advice}"
        )
    return world


def network_of(experiment: ExperimentConfig) -> Network:
    """The network that an experiment names."""
    return network_named(experiment.training.network)


def network_named(name: str) -> Network:
    """The network of a name."""
    return cast("Network", imported(NETWORKS.get(name).network))
