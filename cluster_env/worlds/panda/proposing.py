"""What the supervisor proposes to an agent: sets of free nodes that would satisfy it."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import Cloud, Episodes, Jobs
from cluster_env.worlds.panda.consumers import ANYWHERE
from cluster_env.worlds.panda.holding import run_time
from cluster_env.worlds.panda.picking import BEST_FIT
from cluster_env.worlds.panda.planning import Plan, num_groups, try_nodes
from cluster_env.worlds.panda.scoring import write_pair

TIGHT, FAST, LEAN = range(3)
_LARGE = 1e6


@njit_inlined
def add_up(c: Cloud, plan: Plan, nodes: NDArray[np.int64]) -> tuple[float, float]:
    """What nodes can do in a step, and how many consumers that wait want one like each of them."""
    work, wanted = 0.0, 0.0
    for node in nodes:
        work += c.cores[node] * c.speed[node]
        wanted += plan.wanted[c.type[node]]
    return work, wanted


@njit_inlined
def propose(c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int, plan: Plan) -> bool:
    """Finds the plans of a consumer: what it holds, and free nodes that are not ``plan.taken``.

    Tried are sets of each rack, each region and all nodes, of at least each speed, by best fit.

    Returns:
        Whether there is any. ``plan.facts`` has, for each of `arrays.PLANS`, how many nodes of
        ``plan.sets`` are to be caught, and what states show of it: nodes, cores, work and steps,
        with those that are held.
    """
    at = e.of[episode]
    spec, agent = jobs.of[at.first + consumer], e.agent[at.row + consumer]
    lowest = spec.topology if c.strict else ANYWHERE
    best_fit = np.int64(BEST_FIT)  # not a literal, which would compile `pick` once more
    tight, fast, lean = np.inf, np.inf, np.inf
    plan.facts[:] = 0
    for level in range(spec.topology, lowest - 1, -1):
        for group in range(num_groups(c, level)):
            for kind in range(c.first.size - 1):
                picked, cores = try_nodes(
                    *(c, jobs, e, episode, consumer, plan, level, group),
                    *(at.time, c.speed[c.first[kind]], best_fit, np.uint64(0)),
                )
                if picked == 0:
                    continue
                for k in range(agent.held):
                    plan.tried[picked + k] = e.held[at.row + consumer, k]
                nodes = picked + agent.held
                work, wanted = add_up(c, plan, plan.tried[:nodes])
                steps = run_time(c, spec.topology, agent.left, plan.tried[:nodes])
                if cores * _LARGE + steps < tight:
                    tight = cores * _LARGE + steps
                    keep(plan, TIGHT, picked, nodes, cores, work, steps, wanted)
                if steps * _LARGE + cores < fast:
                    fast = steps * _LARGE + cores
                    keep(plan, FAST, picked, nodes, cores, work, steps, wanted)
                if work * steps < lean:
                    lean = work * steps
                    keep(plan, LEAN, picked, nodes, cores, work, steps, wanted)
    return fast < np.inf


@njit_inlined
def keep(
    plan: Plan,
    which: int,
    picked: int,
    nodes: int,
    cores: int,
    work: float,
    steps: int,
    wanted: float,
) -> None:
    """Makes what was tried one of the plans."""
    facts = plan.facts[which]
    facts[0], facts[1], facts[2], facts[3], facts[4] = picked, nodes, cores, np.int64(work), steps
    facts[5] = np.int64(100 * wanted / nodes)
    for k in range(picked):
        plan.sets[which, k] = plan.tried[k]


@njit_inlined
def best_plan(
    c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int, plan: Plan, free: float, n: int
) -> tuple[float, int]:
    """The plan with the highest score; its nodes are what ``plan.nodes`` begins with.

    Args:
        c: the cloud.
        jobs: of all jobsets.
        e: all episodes.
        episode: which.
        consumer: one that waits, and holds nothing.
        plan: its weights are read.
        free: what all free nodes can do in a step.
        n: consumers that wait.

    Returns:
        The score, and how many nodes; -inf and 0 if there is no plan.
    """
    at = e.of[episode]
    spec, agent = jobs.of[at.first + consumer], e.agent[at.row + consumer]
    most, found = -np.inf, 0 * n
    if free <= 0.0 or not propose(c, jobs, e, episode, consumer, plan):
        return most, found
    for which in range(plan.facts.shape[0]):
        facts = plan.facts[which]
        write_pair(
            *(agent.left, spec.cores, at.time - spec.arrival, spec.topology, spec.core_type >= 0),
            *(n, free, facts[1], facts[2], np.float64(facts[3]), facts[4], facts[5] / 100.0),
            plan.pair,
        )
        score = 0.0
        for k in range(plan.pair.size):
            score += plan.weights[k] * plan.pair[k]
        if score > most:
            most, found = score, facts[0]
            for k in range(found):
                plan.nodes[k] = plan.sets[which, k]
    return most, found


@njit_inlined
def count_wanted(jobs: Jobs, e: Episodes, episode: int, plan: Plan) -> None:
    """Writes ``plan.wanted``: how many of those that wait have each type as their nearest one."""
    at = e.of[episode]
    plan.wanted[:] = 0
    for k in range(at.num_waiting):
        plan.wanted[jobs.types[at.first + e.waiting[at.row + k], 0]] += 1
