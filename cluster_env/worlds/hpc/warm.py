"""Runs everything of this world that is compiled, once; `cluster_env.warm` calls it."""

import numpy as np

from cluster_env.core.world import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.workloads.histories import histories
from cluster_env.worlds.hpc.rules import HEURISTICS, Rule
from cluster_env.worlds.hpc.scorer import Scorer
from cluster_env.worlds.hpc.workloads import LublinWorkload
from cluster_env.worlds.hpc.world import HPC


def warm() -> None:
    """Plays every rule and a scorer, takes a step, and computes features once."""
    world = HPC(processors=16, queue=4)
    workload = LublinWorkload(processors=16, jobs=8, estimates="tsafrir")
    jobset = workload.sample(np.random.default_rng(0))
    for name in HEURISTICS.names():
        evaluate(get_heuristic(name, world), [jobset], world)
    one = np.zeros(1, np.int64)
    histories(one, one, np.ones(1), one)  # of run-time correction
    simulator = world.simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    simulator.play(Scorer.linear())
    simulator.reset()
    row = np.zeros(1, np.int32)
    simulator.choose(Scorer.linear(), row)
    simulator.step(row, simulator.choose(Rule(), row), np.empty(1))
    world.features(simulator.states)
