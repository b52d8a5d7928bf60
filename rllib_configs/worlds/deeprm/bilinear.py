"""A score of waiting jobs from 144 numbers: features of a job times features of the cluster.

It is small enough for a search (`training.algorithm=evolution`), which needs no gradient and can be
asked for anything that schedules show, limits on side metrics included. Where jobs have classes,
there are weights of these beside; they are a block of their own, so that `meta` can learn with how
long a step to adapt them.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.conditioned import ConditionedWorld
from cluster_env.core.errors import InputError
from cluster_env.core.world import World
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.features import IDLE_PATIENCE
from cluster_env.worlds.deeprm.state import StateShape
from rllib_configs.networks.conditions import seen_world
from rllib_configs.networks.registry import (
    FeatureNames,
    Network,
    Shapes,
    Weights,
    require_kind,
)
from rllib_configs.networks.sampling import Draws, sample_actions
from rllib_configs.schema import ExperimentConfig, TrainingSection
from rllib_configs.worlds.deeprm.bilinear_kernels import Floats, score

if TYPE_CHECKING:
    from rllib_configs.worlds.deeprm.bilinear_gradient import BilinearWeights

JOB_FEATURES = (
    *("duration", "inverse_duration", "largest_demand", "mean_demand", "alignment"),
    *("area", "waited", "stretched", "long", "left", "free_after", "later", "first_start"),
    *("delays", "blocks"),
)
"""As `cluster_env.worlds.deeprm.features` has them, and

* ``long``: 1 for jobs that last more than a quarter of the horizon;
* ``left``: share of the scarcer resource that is free when it has started;
* ``free_after``: free share, mean over resources, at the step in which it has finished;
* ``later``: 1 if it would be booked for a later step;
* ``delays``: by how many steps / horizon later the oldest of the jobs that cannot start now would
  fit, as EASY's reservation has it;
* ``blocks``: jobs that can start now and then could not / num_slots.
"""

STATE_FEATURES = (
    *("free", "free_ahead", "backlog", "since_arrival", "filled_slots", "long_slots"),
    *("startable", "crowd", "constant"),
)
"""As `cluster_env.worlds.deeprm.features` has them, and

* ``free``, ``free_ahead``: free shares now and some steps ahead, mean over resources;
* ``long_slots``, ``startable``: share of the slots whose job is long, and can start now;
* ``crowd``: the logarithm of 1 + backlog, over that of 1 + backlog_view.
"""

START = {"inverse_duration": 1.0, "alignment": 0.02, "later": -3.0}
"""Tetris*, nearly: what a search begins with. Void scores `START_VOID`, below any job that can
start now and above any that cannot."""
START_VOID = -1.0


_CONSTANT = STATE_FEATURES.index("constant")


TOLD_GAIN = np.float32(5)
"""What weights of what the scorer is conditioned on are multiplied by: they begin at 0, and the
other weights, which begin as those of a good policy, are to move less in an update."""


@dataclass(frozen=True)
class BilinearShapes:
    """How many features a scorer has.

    Attributes:
        num_classes: of jobs; 0 where there is one alone. Each has two features: 1 for its jobs, and
            the inverse duration of its jobs.
        num_told: numbers that it is conditioned on, further features of the state.
    """

    num_classes: int
    num_told: int

    @staticmethod
    def of(feature_names: FeatureNames) -> "BilinearShapes":
        """Those in a world with these features, as a set scorer sees it."""
        of_item, of_context = feature_names
        return BilinearShapes(
            sum(name.startswith("class_") for name in of_item),
            sum(name.startswith("told_") for name in of_context),
        )

    @property
    def num_looks(self) -> int:
        """Features of a job."""
        return len(JOB_FEATURES) + 2 * self.num_classes

    @property
    def num_seen(self) -> int:
        """Features of the state."""
        return len(STATE_FEATURES) + self.num_told

    @property
    def by_name(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights: of a job's features, of its class, of waiting, and the rest.

        The rest is what the scorer is conditioned on: a row for each feature of a job and one for
        waiting.
        """
        own = len(STATE_FEATURES)
        shapes: dict[str, tuple[int, ...]] = {"job": (len(JOB_FEATURES), own)}
        if self.num_classes:
            shapes["classes"] = (2 * self.num_classes, own)
        shapes["void"] = (own,)
        if self.num_told:
            shapes["told_features"] = (self.num_looks + 1, self.num_told)
        return shapes

    def joined(self, weights: Weights) -> tuple[Floats, Floats]:
        """Weights of all features of a job and of waiting, for all features of the state.

        Float32 ``(num_looks, num_seen)`` and ``(num_seen,)``.
        """
        parts = [weights["job"], *([weights["classes"]] if self.num_classes else [])]
        job, void = np.concatenate(parts), weights["void"]
        if self.num_told:
            told = TOLD_GAIN * weights["told_features"]
            job, void = np.concatenate([job, told[:-1]], axis=1), np.concatenate([void, told[-1]])
        return np.ascontiguousarray(job), np.ascontiguousarray(void)

    def split(self, job: NDArray[Any], void: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """By name, the gradient of the weights from that of what `joined` makes of them."""
        own, jobs = len(STATE_FEATURES), len(JOB_FEATURES)
        told = TOLD_GAIN * np.concatenate([job[:, own:], void[None, own:]])
        parts = {"job": job[:jobs, :own], "classes": job[jobs:, :own], "void": void[:own]}
        return {name: {**parts, "told_features": told}[name] for name in self.by_name}


def start_weights(shapes: BilinearShapes) -> dict[str, Floats]:
    """What training begins with, by name; see `START`."""
    start = {name: np.zeros(shape, np.float32) for name, shape in shapes.by_name.items()}
    for name, weight in START.items():
        start["job"][JOB_FEATURES.index(name), _CONSTANT] = weight
    start["void"][_CONSTANT] = START_VOID
    return start


def in_context(weights: Weights, context: NDArray[Any]) -> dict[str, Floats]:
    """Weights that act as these do in a context: the last features that they are conditioned on.

    The context is the same in all states, so that it only changes what weighs the constant.
    """
    told = TOLD_GAIN * weights["told_features"][:, -context.size :]
    added = (told * np.float32(context)).sum(axis=1)  # one order on every processor
    moved = {name: np.array(value, np.float32) for name, value in weights.items()}
    jobs = len(JOB_FEATURES)
    moved["job"][:, _CONSTANT] += added[:jobs]
    if "classes" in moved:
        moved["classes"][:, _CONSTANT] += added[jobs:-1]
    moved["void"][_CONSTANT] += added[-1]
    return moved


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
        self._arguments = (*seen_of(world, ahead, books), job, void)

    def logits(self, states: NDArray[np.uint8]) -> Floats:
        """Scores, float32 ``(n, num_actions)``.

        What is allowed is the mask ``placeable``, or without booking ``start_now``; and an idle
        cluster may not wait for ever, as in ``live``.
        """
        require_states(states, self._space)
        plain = states if states.flags.carray else states.copy()
        return score(plain, *self._arguments)

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


def seen_of(world: DeepRM, ahead: int, books: bool) -> tuple[StateShape, bool, bool, int, int]:
    """What the kernels have to know beside states and weights; see `score`."""
    shape, last = world.layout.shape, world.switches.try_last_start
    return shape, last, books, IDLE_PATIENCE, min(ahead, shape.horizon - 1)


class BilinearNetwork(Network):
    """The scorer as a network, which a search trains."""

    module_place = "rllib_configs.worlds.deeprm.bilinear_module:BilinearModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The weights that training begins with, and what the scores depend on beside them."""
        start = start_weights(_shapes_of(experiment, world))
        named = {f"network.{name}": value for name, value in start.items()}
        return {"start": named, "world": world, "training": experiment.training}

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
