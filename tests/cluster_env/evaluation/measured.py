"""Sixty jobsets of DeepRM's world, and what heuristics come to on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import Summary, evaluate, summarize
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

WORLD = DeepRM()
JOBSETS = sample_jobsets(BimodalWorkload(load=1.1), 0, Split.VALIDATION, range(60))


def heuristic(spec: str) -> Policy:
    return get_heuristic(spec, WORLD)


def summary(spec: str) -> Summary:
    return summarize(evaluate(heuristic(spec), JOBSETS, WORLD))


@dataclass(frozen=True)
class Idle:
    """Starts nothing, ever."""

    name: str = "idle"

    def act(self, states: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        return np.full(len(states), WORLD.cluster.num_slots, np.int32)
