"""A score of waiting jobs from 60 numbers: features of a job times features of the cluster.

It is small enough for a search (`training.algorithm=evolution`), which needs no gradient and can be
asked for anything that schedules show, limits on the price included.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit
from cluster_env.core.world import World
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.arrays import require_states
from cluster_env.worlds.deeprm.features import describe
from cluster_env.worlds.deeprm.masks import IDLE_PATIENCE, mark_live
from cluster_env.worlds.deeprm.state import StateShape
from rllib_configs.networks.registry import Network, Shapes, Weights, require_kind

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig

JOB_FEATURES = (
    *("duration", "inverse_duration", "largest_demand", "mean_demand", "alignment"),
    *("area", "waited", "stretched", "long"),
)
"""As `cluster_env.worlds.deeprm.features.slot_features` has them; ``long`` is 1 for jobs that
last more than a quarter of the horizon."""

STATE_FEATURES = ("free", "free_ahead", "backlog", "since_arrival", "filled_slots", "constant")
"""Free units now and some steps ahead, as shares of the capacity, mean over resources; the others
as `slot_features` has them."""

START = {"inverse_duration": 1.0, "alignment": 0.02}
"""Tetris*, nearly: what a search begins with. Void scores `START_VOID`, below any job."""
START_VOID = -1.0

_NOT_ALLOWED = np.float32(-1e9)

Floats = NDArray[np.float32]


class BilinearSampler:
    """Acts with a scorer; see `rllib_configs.networks.sampling.Sampler`.

    Args:
        job: weights of a job's features, float32 ``(9, 6)``, a column for each of the state's.
        void: weights of waiting, float32 ``(6,)``.
        ahead: steps ahead of which it sees the free units.
        world: where it acts.
    """

    def __init__(self, job: Floats, void: Floats, ahead: int, world: DeepRM) -> None:
        self._layout, shape = world.layout, world.layout.shape
        ahead = min(ahead, shape.horizon - 1)
        self._arguments = (shape, world.switches.try_last_start, ahead, job, void)

    def logits(self, states: NDArray[np.uint8]) -> Floats:
        """Scores under `live_mask`, float32 ``(n, num_actions)``."""
        require_states(states, self._layout)
        plain = states if states.flags.carray else states.copy()
        scores: Floats = _score(plain, *self._arguments)
        return scores

    def sample(
        self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], Floats]:
        """The highest score: a search tries no other, so nothing is drawn; see `Sampler`."""
        actions = self.logits(states).argmax(axis=1).astype(np.int32)
        return actions, np.zeros(actions.size, np.float32)


@njit(cache=True, nogil=True)
def _score(
    states: NDArray[np.uint8],
    shape: StateShape,
    try_last_start: bool,
    ahead: int,
    job: Floats,
    void: Floats,
) -> Floats:
    num_rows, num_slots, resources = states.shape[0], shape.num_slots, shape.capacity.size
    allowed = np.empty((num_rows, num_slots + 1), np.bool_)
    classes = shape.num_classes if shape.num_classes > 1 else 0
    slots = np.empty((1, num_slots, 11 + resources + classes), np.float32)
    context = np.empty((1, shape.horizon * resources + 3), np.float32)
    scores = np.full((num_rows, num_slots + 1), _NOT_ALLOWED, np.float32)
    seen, weights = np.ones(void.size, np.float32), np.empty(job.shape[0], np.float32)
    mark_live(states, shape, try_last_start, IDLE_PATIENCE, allowed)
    for i in range(num_rows):
        if not allowed[i, :num_slots].any():
            scores[i, num_slots] = 0.0
            continue
        describe(states[i : i + 1], shape, try_last_start, slots, context)
        seen[0] = context[0, :resources].mean()
        seen[1] = context[0, ahead * resources : (ahead + 1) * resources].mean()
        seen[2:5] = context[0, shape.horizon * resources :]
        for f in range(weights.size):
            weights[f] = (job[f] * seen).sum()
        for slot in range(num_slots):
            if not allowed[i, slot]:
                continue
            row = slots[0, slot]
            demands = row[3 : 3 + resources]
            rest = 3 + resources  # starts_now, starts_later, first_start, alignment, area, index
            total = weights[0] * row[1] + weights[1] * row[2]
            total += weights[2] * demands.max() + weights[3] * demands.mean()
            total += weights[4] * row[rest + 3] + weights[5] * row[rest + 4]
            total += weights[6] * row[rest + 6] + weights[7] * row[rest + 7]
            if row[1] > 0.25:
                total += weights[8]
            scores[i, slot] = total
        if allowed[i, num_slots]:
            scores[i, num_slots] = (void * seen).sum()
    return scores


def _module() -> "type[TorchRLModule]":
    from rllib_configs.networks.held import HeldWeights

    return HeldWeights


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    shapes = _shapes(experiment, world)
    start = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    constant = STATE_FEATURES.index("constant")
    for name, weight in START.items():
        start["network.job"][JOB_FEATURES.index(name), constant] = weight
    start["network.void"][constant] = START_VOID
    return {"start": start}


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> BilinearSampler:
    job, void = weights["network.job"], weights["network.void"]
    return BilinearSampler(job, void, experiment.training.ahead, _require_deeprm(world))


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    _require_deeprm(world)
    return {
        "network.job": (len(JOB_FEATURES), len(STATE_FEATURES)),
        "network.void": (len(STATE_FEATURES),),
    }


def _require_deeprm(world: World) -> DeepRM:
    return require_kind(world, DeepRM, "the network bilinear_scorer scores jobs", "set_scorer")


NETWORK = Network(_module, _model_config, _sampler, _shapes)
