"""Weights of a bilinear scorer: what they count, their shapes, and what training begins with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.world import Features
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.features import IDLE_PATIENCE
from cluster_env.worlds.deeprm.state import StateShape
from rllib_configs.networks.registry import FeatureNames, Weights
from rllib_configs.worlds.deeprm.bilinear_kernels import Floats, observe

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


def item_names(num_looks: int) -> tuple[str, ...]:
    """Names of so many features of a job, those of its class last."""
    classes = range((num_looks - len(JOB_FEATURES)) // 2)
    of_classes = (f"{name}_{c}" for name in ("class", "inverse_duration_of_class") for c in classes)
    return (*JOB_FEATURES, *of_classes)


SeenOf = tuple[StateShape, bool, bool, int, int]


def seen_of(world: DeepRM, ahead: int, books: bool) -> SeenOf:
    """What the kernels have to know beside states and weights; see `score`."""
    shape, last = world.layout.shape, world.switches.try_last_start
    return shape, last, books, IDLE_PATIENCE, min(ahead, shape.horizon - 1)


def observed(states: NDArray[np.uint8], seen: SeenOf, num_looks: int) -> Features:
    """Features of jobs and of states, and what is allowed; see `bilinear_kernels.observe`."""
    num_slots = seen[0].num_slots
    features = Features(
        np.empty((len(states), num_slots, num_looks), np.float32),
        np.empty((len(states), len(STATE_FEATURES)), np.float32),
        np.empty((len(states), num_slots + 1), np.bool_),
    )
    observe(np.ascontiguousarray(states), *seen, *features)
    return features
