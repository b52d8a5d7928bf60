"""Sets of nodes that central rules choose for one consumer, knowing all nodes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import PLANS, RUNNING, Cloud, Episodes, Jobs
from cluster_env.worlds.panda.consumers import ANYWHERE, ONE_RACK
from cluster_env.worlds.panda.holding import is_free, run_time
from cluster_env.worlds.panda.picking import BEST_FIT, FASTEST, RANDOM, Offer, pick
from cluster_env.worlds.panda.scoring import PAIR

_NONE: int = np.int64(0)  # type: ignore[assignment]  # a literal would compile callers twice


class Plan(NamedTuple):
    """Room for what a rule works out; made by `new_plan`."""

    offer: Offer
    nodes: NDArray[np.int64]  # (num_nodes,): the best set so far
    tried: NDArray[np.int64]  # (num_nodes,): one that is compared with it
    taken: NDArray[np.bool_]  # (num_nodes,): nodes that are kept for somebody
    order: NDArray[np.int64]  # (most consumers,): those that wait, as they get their turn
    owner: NDArray[np.int64]  # (num_nodes,): who has picked each node, or -1
    out: NDArray[np.bool_]  # (most consumers,): those that have withdrawn
    wanted: NDArray[np.int64]  # (num_nodes,): consumers that wait, by the type nearest to them
    sets: NDArray[np.int64]  # (plans, num_nodes): nodes of each of `PLANS`
    facts: NDArray[np.int64]  # (plans, 1 + `PLAN_SEEN`): how many those are, and what states have
    score: NDArray[np.float64]  # (most consumers,): of those in `order`
    weights: NDArray[np.float64]  # of a scorer, see `cluster_env.worlds.panda.scoring`
    pair: NDArray[np.float64]  # what it scores


def new_plan(num_nodes: int, most_consumers: int) -> Plan:
    """Makes room."""
    ints = [np.zeros(num_nodes, np.int64) for _ in range(7)]
    offer = Offer(
        *(ints[0], ints[1], np.zeros(num_nodes), ints[2]),
        *(np.zeros(num_nodes, np.bool_), ints[3]),
    )
    return Plan(
        *(offer, ints[4], ints[5], np.zeros(num_nodes, np.bool_)),
        *(np.zeros(most_consumers, np.int64), ints[6], np.zeros(most_consumers, np.bool_)),
        *(np.zeros(num_nodes, np.int64), np.zeros((len(PLANS), num_nodes), np.int64)),
        *(np.zeros((len(PLANS), 6), np.int64), np.zeros(most_consumers)),
        *(np.zeros(len(PAIR)), np.zeros(len(PAIR))),
    )


@njit_inlined
def num_groups(c: Cloud, level: int) -> int:
    """Racks, regions, or one."""
    if level == ANYWHERE:
        return 1
    most = 0
    for node in range(c.type.size):
        most = max(most, c.rack[node] if level == ONE_RACK else c.region[node])
    return most + 1


@njit_inlined
def free_from(c: Cloud, e: Episodes, episode: int, node: int) -> int:
    """When a node is free as far as is known; `max_time` for one that is away or kept waiting."""
    at = e.node[episode, node]
    if at.away:
        return c.max_time
    if at.holder < 0:
        return e.of[episode].time
    agent = e.agent[e.of[episode].row + at.holder]
    return agent.finish if agent.stage == RUNNING else c.max_time


@njit_inlined
def collect(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    consumer: int,
    plan: Plan,
    level: int,
    group: int,
    until: int,
    slowest: float,
) -> int:
    """Offers the nodes of a rack, a region or all that a consumer may have by some clock.

    Those that are announced to leave before it could be done on them are left out.

    Returns:
        How many there are.
    """
    row = e.of[episode].row + consumer
    spec, left = jobs.of[e.of[episode].first + consumer], e.agent[row].left
    count = 0
    for node in range(c.type.size):
        if plan.taken[node] or c.speed[node] < slowest:
            continue
        if spec.core_type >= 0 and c.core_type[node] != spec.core_type:
            continue
        where = c.rack[node] if level == ONE_RACK else c.region[node]
        if level != ANYWHERE and where != group:
            continue
        clock, leaves = free_from(c, e, episode, node), e.node[episode, node].leaves
        if clock > until or clock >= c.max_time:
            continue
        if leaves >= 0 and leaves < clock + left / c.speed[node]:
            continue
        offer = plan.offer
        offer.cores[count], offer.memory[count] = c.cores[node], c.memory[node]
        offer.speed[count], offer.node[count] = c.speed[node], node
        count += 1
    return count


@njit_inlined
def try_nodes(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    consumer: int,
    plan: Plan,
    level: int,
    group: int,
    until: int,
    slowest: float,
    how: int,
    key: np.uint64,
) -> tuple[int, int]:
    """Picks, of the nodes that `collect` offers, what a consumer lacks beside those that it holds.

    Returns:
        How many nodes ``plan.tried`` begins with, 0 if there are not enough; and all its cores.
    """
    at = e.of[episode]
    spec, agent = jobs.of[at.first + consumer], e.agent[at.row + consumer]
    count = collect(c, jobs, e, episode, consumer, plan, level, group, until, slowest)
    picked = pick(
        *(plan.offer, count, spec.cores - agent.held_cores, spec.memory - agent.held_memory),
        *(c.held - agent.held, how, key),
    )
    cores = agent.held_cores
    for k in range(picked):
        plan.tried[k] = plan.offer.node[plan.offer.picked[k]]
        cores += c.cores[plan.tried[k]]
    return picked, cores


@njit_inlined
def keep_tried(plan: Plan, picked: int) -> None:
    """Makes what was tried the best set so far."""
    for k in range(picked):
        plan.nodes[k] = plan.tried[k]


@njit_inlined
def fit(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    consumer: int,
    plan: Plan,
    how: int,
    key: np.uint64,
) -> int:
    """Chooses free nodes where the consumer wants them, or anywhere if there are not enough.

    Of several racks or regions, best fit takes that with the fewest cores beyond the demand, and
    fastest fit that with the shortest run time.

    Returns:
        How many nodes ``plan.nodes`` begins with; 0 if it has to wait.
    """
    at = e.of[episode]
    spec, left = jobs.of[at.first + consumer], e.agent[at.row + consumer].left
    lowest = spec.topology if c.strict else ANYWHERE
    level, found, least = spec.topology, _NONE, np.inf
    if how == RANDOM:
        level = lowest  # it does not ask where the consumer wants its nodes
    while found == 0 and level >= lowest:
        for group in range(num_groups(c, level)):
            picked, cores = try_nodes(
                *(c, jobs, e, episode, consumer, plan, level, group, at.time, 0.0, how, key)
            )
            score = 1.0 * cores
            if picked and how == FASTEST:
                score += 1e6 * run_time(c, spec.topology, left, plan.tried[:picked])
            if picked and score < least:
                least, found = score, picked
                keep_tried(plan, picked)
        level -= 1
    return found


@njit_inlined
def finish_early(
    c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int, plan: Plan
) -> tuple[int, int]:
    """Chooses the nodes, free now or later, on which a consumer is done first.

    Tried are all nodes, those of each region and each rack, those of at least each speed, and those
    that are free by now and by each finish of a consumer that runs. Of equally early finishes the
    earliest start counts, then the fewest cores.

    Returns:
        How many nodes ``plan.nodes`` begins with, 0 if none will do; and when all are free.
    """
    at = e.of[episode]
    spec, left = jobs.of[at.first + consumer], e.agent[at.row + consumer].left
    lowest = spec.topology if c.strict else ANYWHERE
    best_fit = np.int64(BEST_FIT)  # not a literal, which would compile `pick` once more
    found, begin, least = _NONE, at.time, np.inf
    for level in range(spec.topology, lowest - 1, -1):
        for group in range(num_groups(c, level)):
            for kind in range(c.first.size - 1):
                slowest = c.speed[c.first[kind]]
                for r in range(-1, at.num_running):
                    until = at.time
                    if r >= 0:
                        until = e.agent[at.row + e.running[at.row + r]].finish
                    picked, cores = try_nodes(
                        *(c, jobs, e, episode, consumer, plan, level, group),
                        *(until, slowest, best_fit, np.uint64(0)),
                    )
                    if picked == 0:
                        continue
                    when = at.time
                    for k in range(picked):
                        when = max(when, free_from(c, e, episode, plan.tried[k]))
                    done = when + run_time(c, spec.topology, left, plan.tried[:picked])
                    score = 1e6 * done + 10.0 * (when - at.time) + cores / 1e4
                    if score < least:
                        least, found, begin = score, picked, when
                        keep_tried(plan, picked)
    return found, begin


@njit_inlined
def free_work(c: Cloud, e: Episodes, episode: int) -> float:
    """What all free nodes can do in a step, in core steps at speed 1."""
    total = 0.0
    for node in range(c.type.size):
        if is_free(e, episode, node):
            total += c.cores[node] * c.speed[node]
    return total
