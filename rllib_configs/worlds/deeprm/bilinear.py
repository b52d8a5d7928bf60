"""A score of waiting jobs from 144 numbers: features of a job times features of the cluster.

It is small enough for a search (`training.algorithm=evolution`), which needs no gradient and can be
asked for anything that schedules show, limits on side metrics included. Where jobs have classes,
there are weights of these beside; they are a block of their own, so that `meta` can learn with how
long a step to adapt them.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.errors import InputError
from cluster_env.core.world import Features, World
from cluster_env.worlds.deeprm import DeepRM
from rllib_configs.conditioned import ConditionedWorld
from rllib_configs.config.options import TrainingSection
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import (
    FeatureNames,
    Network,
    Shapes,
    Weights,
    require_kind,
)
from rllib_configs.networks.sampling import Draws, TensorForm, sample_actions
from rllib_configs.worlds.deeprm.bilinear_kernels import Floats, score
from rllib_configs.worlds.deeprm.bilinear_weights import (
    STATE_FEATURES,
    BilinearShapes,
    in_context,
    item_names,
    observed,
    seen_of,
    start_weights,
)

if TYPE_CHECKING:
    from rllib_configs.worlds.deeprm.bilinear_gradient import BilinearWeights


class BilinearSampler:
    """Acts with a scorer; see `rllib_configs.networks.sampling.Sampler`.

    Args:
        job: weights of a job's features, float32 ``(15, 9)``, a column for each of the state's;
            those of classes may follow.
        void: weights of waiting, float32 ``(9,)``.
        ahead: steps ahead of which it sees the free units.
        books: whether it may book jobs for later.
        world: where it acts.
    """

    def __init__(self, job: Floats, void: Floats, ahead: int, books: bool, world: DeepRM) -> None:
        self._space = world.state_space
        self.job, self.void = job, void
        self._seen_of = seen_of(world, ahead, books)

    def logits(self, states: NDArray[np.uint8]) -> Floats:
        """Scores, float32 ``(n, num_actions)``.

        What is allowed is the mask ``placeable``, or without booking ``start_now``; and an idle
        cluster may not wait for ever, as in ``live``.
        """
        require_states(states, self._space)
        plain = states if states.flags.carray else states.copy()
        return score(plain, *self._seen_of, self.job, self.void)

    def tensor_form(self) -> TensorForm:
        """See `TensorForm`; items and context are those of `JOB_FEATURES` and `STATE_FEATURES`."""
        from rllib_configs.networks.bilinear import bilinear_form  # PyTorch takes seconds

        def observe(states: NDArray[np.uint8]) -> Features:
            require_states(states, self._space)
            return observed(states, self._seen_of, self.job.shape[0])

        names = (item_names(self.job.shape[0]), STATE_FEATURES)
        return bilinear_form(self.job, self.void, observe, names)

    def sample(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> Draws:
        """The highest score: a search tries no other, so nothing is drawn; see `Sampler`."""
        actions = self.logits(states).argmax(axis=1).astype(np.int32)
        return actions, np.zeros(actions.size, np.float32)


class DrawingSampler(BilinearSampler):
    """One that draws actions, from the softmax of scores / temperature."""

    def __init__(self, *arguments: Any, temperature: float) -> None:
        super().__init__(*arguments)
        self._temperature = np.float32(temperature)

    def sample(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> Draws:
        """See `Sampler`."""
        return sample_actions(self.logits(states) / self._temperature, uniforms)


class BilinearNetwork(Network):
    """The scorer as a network, which a search trains."""

    module_place = "rllib_configs.networks.modules:HeldWeights"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The weights that training begins with."""
        start = start_weights(_shapes_of(experiment, world))
        named = {f"network.{name}": value for name, value in start.items()}
        return {"start": named}

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> BilinearSampler:
        """See `BilinearSampler`."""
        seen = seen_world(experiment.training, world, experiment.task.build_objective())
        own = {name.removeprefix("network."): value for name, value in weights.items()}
        return BilinearSampler(*_acting(experiment.training, own, seen))

    def scorer(
        self, training: TrainingSection, feature_names: FeatureNames, seed: int | None = None
    ) -> "BilinearWeights":
        """See `Network`."""
        from rllib_configs.worlds.deeprm.bilinear_gradient import BilinearWeights

        options = (training.ahead, training.books, training.draw_temperature)
        return BilinearWeights(feature_names, *options, seed)

    def scorer_sampler(
        self, training: TrainingSection, weights: Weights, world: World
    ) -> DrawingSampler:
        """See `Network`."""
        acting = _acting(training, weights, world)
        return DrawingSampler(*acting, temperature=training.draw_temperature)

    def in_context(self, weights: Weights, context: NDArray[np.float64]) -> Weights:
        """See `Network`."""
        return in_context(weights, context)

    def widened(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> tuple[ExperimentConfig, Weights]:
        """See `Network`: a scorer that knows no classes has weights of 0 for them."""
        own, acting = experiment.task.world.cluster, _require_deeprm(world).cluster
        if own.num_classes > 1 or acting.num_classes < 2:
            return experiment, weights
        cluster = replace(own, num_classes=acting.num_classes)
        changed = replace(experiment.task.world, cluster=cluster)
        task = experiment.task.model_copy(update={"world": changed})
        wide = experiment.model_copy(update={"task": task})
        room = {
            name: np.zeros(shape, np.float32) for name, shape in self.shapes(wide, world).items()
        }
        return wide, {**room, **weights}

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Those of `BilinearShapes`, in the world in which the scorer was trained.

        Raises:
            InputError: if it cannot act in the other one.
        """
        acting = _require_deeprm(world).cluster.num_classes
        num_classes = _require_deeprm(experiment.task.world).cluster.num_classes
        if num_classes > 1 and acting != num_classes:
            raise InputError(
                f"the network bilinear_scorer was trained with {num_classes} classes of jobs, but "
                f"the world has {acting}"
            )
        shapes = _shapes_of(experiment, experiment.task.world).by_name
        return {f"network.{name}": shape for name, shape in shapes.items()}


def _shapes_of(experiment: ExperimentConfig, world: World) -> BilinearShapes:
    """Those of an experiment's network in a world."""
    seen = seen_world(
        experiment.training, _require_deeprm(world), experiment.task.build_objective()
    )
    return BilinearShapes.of(seen.feature_names)


def _acting(
    training: TrainingSection, weights: Weights, world: World
) -> tuple[Floats, Floats, int, bool, DeepRM]:
    """What a sampler is made of, where what the scorer is conditioned on is mixed into weights."""
    if isinstance(world, ConditionedWorld):
        weights = in_context(weights, np.array([value for _, value in world.condition]))
        world = world.world
    parts = [weights["job"], *([weights["classes"]] if "classes" in weights else [])]
    job = np.ascontiguousarray(np.concatenate(parts))
    return job, weights["void"], training.ahead, training.books, _require_deeprm(world)


def _require_deeprm(world: World) -> DeepRM:
    return require_kind(world, DeepRM, "the network bilinear_scorer scores jobs", "set_scorer")


NETWORK = BilinearNetwork()
