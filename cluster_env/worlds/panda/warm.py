"""Runs everything of this world that is compiled, once; `cluster_env.warm` calls it."""

import numpy as np

from cluster_env.core.policy import choose
from cluster_env.core.world import get_heuristic
from cluster_env.objectives import get_objective
from cluster_env.worlds.panda.features import proposals
from cluster_env.worlds.panda.workloads import ClusteredWorkload
from cluster_env.worlds.panda.world import Panda


def warm() -> None:
    """Takes a step by a rule, and computes features once."""
    world = Panda(observed=4, held=4)
    jobset = ClusteredWorkload(world.nodes, window=20).sample(np.random.default_rng(0))
    simulator = world.simulator()
    simulator.load([jobset], get_objective("slowdown"))
    rows = np.flatnonzero(simulator.active).astype(np.int32)
    states = simulator.states[rows]
    actions = choose(get_heuristic("best_fit", world), simulator, rows, np.zeros(rows.size))
    simulator.step(rows, actions, np.empty(rows.size))
    world.features(states)
    proposals(states, world.observed + world.held)
