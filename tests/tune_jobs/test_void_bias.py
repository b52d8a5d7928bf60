"""A policy that waits too much or too little is set right by one number."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.seeding import uniforms
from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.observations import live_mask
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.policy_files import LearnedPolicy
from tune_jobs.measuring.policy_specs import VOID_BIASES, tuned_void_bias
from tune_jobs.measuring.protocol import EvaluationProtocol

CLUSTER = Cluster()


class ShortestFirst:
    """Prefers short jobs; `void` is the logit of waiting."""

    def __init__(self, void: float) -> None:
        self.void = void
        self.layout = StateLayout(CLUSTER)

    def logits(self, states: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Minus a tenth of each duration."""
        duration = self.layout.slots_of(states)[:, :, 0].astype(np.float32)
        void = np.full((states.shape[0], 1), self.void, np.float32)
        logits = np.concatenate([-0.1 * duration, void], axis=1)
        return np.where(live_mask(DeepRM(CLUSTER), states), logits, np.float32(-1e9))

    def sample(
        self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Not needed here."""
        raise NotImplementedError


def protocol(load: float, window: int) -> EvaluationProtocol:
    workload = BimodalWorkload(load=load, window=window, first_step=1)
    return EvaluationProtocol(
        Task(DeepRM(rules="released"), workload, get_objective("slowdown")), "slowdown"
    )


def test_a_void_bias_makes_a_policy_that_always_waits_start_the_shortest_job() -> None:
    states = np.zeros((50, StateLayout(CLUSTER).size), np.uint8)
    rng = np.random.default_rng(0)
    slots = StateLayout(CLUSTER).slots_of(states)
    slots[:, :, 0] = rng.permuted(np.tile(np.arange(1, 11), (50, 1)), axis=1)
    slots[:, :, 1:] = 1
    numbers = uniforms(np.arange(50, dtype=np.uint64), 0)
    waits = LearnedPolicy("waits", ShortestFirst(void=3.0), "argmax")
    hurries = LearnedPolicy("hurries", ShortestFirst(void=3.0), "argmax", void_bias=-6.0)
    assert (waits.act(states, numbers) == CLUSTER.num_slots).all()
    shortest = get_heuristic("sjf", DeepRM()).act(states, numbers)
    assert np.array_equal(hurries.act(states, numbers), shortest)


@pytest.mark.parametrize("window", [50, 400])
def test_the_void_bias_that_suits_is_found_on_validation_jobsets(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tune_jobs.measuring.protocol.NUM_TUNING_JOBSETS", 20)  # to save time
    # -0.1 x duration against void at -0.8: short jobs start, those of 10 to 15 steps are held
    # until nothing else happens, which is right while the window is short, and ruins a long one.
    policy = LearnedPolicy("holds", ShortestFirst(void=-0.8), "argmax")
    tuned = tuned_void_bias(policy, protocol(0.7, window))
    assert tuned.void_bias in VOID_BIASES
    if window == 50:
        assert tuned.void_bias >= 0
    else:
        assert tuned.void_bias <= -1
