"""An allocation that no consumer that takes part envies, up to one node."""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import Cloud, Episodes, Jobs
from cluster_env.worlds.panda.consumers import ANYWHERE
from cluster_env.worlds.panda.holding import is_free
from cluster_env.worlds.panda.planning import Plan, collect


@njit_inlined
def value(c: Cloud, jobs: Jobs, job: int, node: int) -> float:
    """What a consumer would give for a node: its speed times the share of the demand that it has.

    Of cores and memory the mean share counts.
    """
    spec = jobs.of[job]
    share = min(c.cores[node] / spec.cores, 1.0)
    if spec.memory:
        share = (share + min(c.memory[node] / spec.memory, 1.0)) / 2
    return c.speed[node] * share


@njit_inlined
def share_out(c: Cloud, jobs: Jobs, e: Episodes, episode: int, n: int, plan: Plan) -> None:
    """Round robin with withdrawal, which leaves each of those that take part satisfied.

    The consumers pick in turn, the most valued node that is left, each until it is satisfied. In
    such a turn nobody envies who picks behind it, nor, but for one node, who picks before it
    (Caragiannis et al., The unreasonable fairness of maximum Nash welfare, 2019, section 2). If one
    cannot be satisfied, the last of these withdraws and all pick anew. As each needs a node, no
    more take part than nodes are free.

    Args:
        c: the cloud.
        jobs: of all jobsets.
        e: all episodes.
        episode: which.
        n: consumers in ``plan.order``.
        plan: ``owner`` and ``out`` are written, by places in ``plan.order``.
    """
    free = 0
    for node in range(c.type.size):
        free += is_free(e, episode, node)
    plan.out[:n] = False
    again = True
    while again:
        again, last = False, -1
        part, until = 0, 0
        while until < n and part < free:
            part += not plan.out[until]
            until += 1
        for k in range(until, n):
            plan.out[k] = True
        plan.owner[:] = -1
        plan.taken[:] = False
        picking = True
        while picking:
            picking = False
            for k in range(until):
                if not plan.out[k] and missing(c, jobs, e, episode, plan, k):
                    picking |= pick_next(c, jobs, e, episode, plan, k)
        for k in range(until):
            if not plan.out[k] and missing(c, jobs, e, episode, plan, k):
                last = k
        if last >= 0:
            plan.out[last] = again = True
            for k in range(until, n):
                plan.out[k] = False
    plan.taken[:] = False


@njit_inlined
def missing(c: Cloud, jobs: Jobs, e: Episodes, episode: int, plan: Plan, k: int) -> bool:
    """Whether a consumer needs more than it has picked."""
    spec = jobs.of[e.of[episode].first + plan.order[k]]
    cores, memory = spec.cores, spec.memory
    for node in range(c.type.size):
        if plan.owner[node] == k:
            cores -= c.cores[node]
            memory -= c.memory[node]
    return cores > 0 or memory > 0


@njit_inlined
def pick_next(c: Cloud, jobs: Jobs, e: Episodes, episode: int, plan: Plan, k: int) -> bool:
    """Lets a consumer pick the node that it values most; whether there was one."""
    at = e.of[episode]
    consumer, held = plan.order[k], 0
    for node in range(c.type.size):
        held += plan.owner[node] == k
    if held == c.held:
        return False
    nowhere = np.int64(ANYWHERE)  # not a literal, which would compile `collect` once more
    count = collect(c, jobs, e, episode, consumer, plan, nowhere, nowhere, at.time, 0.0)
    best, most = -1, -np.inf
    for i in range(count):
        node = plan.offer.node[i]
        worth = value(c, jobs, at.first + consumer, node)
        if worth > most:
            best, most = node, worth
    if best < 0:
        return False
    plan.owner[best], plan.taken[best] = k, True
    return True
