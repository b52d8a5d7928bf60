"""A score of waiting jobs from 144 numbers: features of a job times features of the cluster.

It is small enough for a search (`training.algorithm=evolution`), which needs no gradient and can be
asked for anything that schedules show, limits on side metrics included.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.world import World
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.features import IDLE_PATIENCE
from cluster_env.worlds.deeprm.state import StateShape
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind
from rllib_configs.networks.sampling import Draws
from rllib_configs.schema import ExperimentConfig
from rllib_configs.worlds.deeprm.bilinear_kernels import Floats, score

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


class BilinearSampler:
    """Acts with a scorer; see `rllib_configs.networks.sampling.Sampler`.

    Args:
        job: weights of a job's features, float32 ``(15, 9)``, a column for each of the state's.
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


def seen_of(world: DeepRM, ahead: int, books: bool) -> tuple[StateShape, bool, bool, int, int]:
    """What the kernels have to know beside states and weights; see `score`."""
    shape, last = world.layout.shape, world.switches.try_last_start
    return shape, last, books, IDLE_PATIENCE, min(ahead, shape.horizon - 1)


class BilinearNetwork(Network):
    """The scorer as a network, which a search trains."""

    module_place = "rllib_configs.worlds.deeprm.bilinear_module:BilinearModule"

    def model_config(self, experiment: ExperimentConfig, world: World) -> dict[str, Any]:
        """The weights that training begins with, and what the scores depend on beside them."""
        start = {
            name: np.zeros(shape, np.float32)
            for name, shape in self.shapes(experiment, world).items()
        }
        constant = STATE_FEATURES.index("constant")
        for name, weight in START.items():
            start["network.job"][JOB_FEATURES.index(name), constant] = weight
        start["network.void"][constant] = START_VOID
        return {"start": start, "world": world, "training": experiment.training}

    def sampler(
        self, experiment: ExperimentConfig, weights: Weights, world: World
    ) -> BilinearSampler:
        """See `BilinearSampler`."""
        training, parts = experiment.training, (weights["network.job"], weights["network.void"])
        return BilinearSampler(*parts, training.ahead, training.books, _require_deeprm(world))

    def shapes(self, experiment: ExperimentConfig, world: World) -> Shapes:
        """Those of both weights."""
        _require_deeprm(world)
        return {
            "network.job": (len(JOB_FEATURES), len(STATE_FEATURES)),
            "network.void": (len(STATE_FEATURES),),
        }


def _require_deeprm(world: World) -> DeepRM:
    return require_kind(world, DeepRM, "the network bilinear_scorer scores jobs", "set_scorer")


NETWORK = BilinearNetwork()
