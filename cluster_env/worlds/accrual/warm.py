"""Runs everything of this world that is compiled, once; `cluster_env.warm` calls it."""

import numpy as np

from cluster_env.core.world import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.objectives.utility import final_utility
from cluster_env.worlds.accrual.heuristics import HEURISTICS
from cluster_env.worlds.accrual.values import RULEBASE, RULES, mean_values
from cluster_env.worlds.accrual.workloads import PoissonWorkload
from cluster_env.worlds.accrual.world import Accrual


def warm() -> None:
    """Plays every rule, also on two machines, takes a step, and computes features and values."""
    world = Accrual(candidates=4)
    jobset = PoissonWorkload(rate=0.3, window=100).sample(np.random.default_rng(0))
    for name in HEURISTICS.names():
        final_utility(evaluate(get_heuristic(name, world), [jobset], world))
    simulator = world.simulator()
    simulator.load([jobset], get_objective("utility"))
    action = get_heuristic("rulebase", world).act(simulator.states, np.zeros(1))
    simulator.step(np.zeros(1, np.int32), action, np.empty(1))
    world.features(simulator.states)
    mean_values(RULEBASE, np.zeros((1, len(RULES))), np.zeros((1, 3), np.float32), np.empty(1))
