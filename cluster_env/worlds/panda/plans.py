"""Sets of nodes for one consumer: what they are worth, how they are picked, and plans."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import ZERO, njit_inlined
from cluster_env.core.seeding import uniform
from cluster_env.worlds.panda.consumers import ANYWHERE, ONE_RACK, ONE_REGION
from cluster_env.worlds.panda.state import (
    PLAN_SEEN,
    PLANS,
    RUNNING,
    Cloud,
    Episode,
    Offer,
    Scratch,
)

BEST_FIT, FASTEST, RANDOM = range(3)
"""How the next node is picked."""

ACROSS_RACKS, ACROSS_REGIONS = 1.25, 1.6
"""Factors on the run time of a consumer whose nodes are in several racks, or regions, though it
prefers one."""

MIX = np.uint64(0x9E3779B97F4A7C15)
"""Keys of random numbers that belong to each other are so far apart."""

# Scores of several criteria in one number: each is far above all that comes after it.
_NO_FIT = 1e6  # above the excess of any node
_MEMORY = 1.0 / 2**22  # below one core, for any memory
_SPEED = 1e8
_LARGE = 1e6

_FAST = PLANS.index("fast")
_NO_KEY = np.uint64(0)
_BEST_FIT = BEST_FIT + ZERO


class NodeSearch(NamedTuple):
    """Which nodes are looked at for a consumer."""

    level: int  # `ANYWHERE`, or those of one region or one rack
    place: int  # number of the region or the rack
    until: int  # clock by which they have to be free, as far as is known
    slowest: float  # the least speed


@njit_inlined
def stretch(cloud: Cloud, topology: int, nodes: NDArray[np.int64]) -> float:
    """Factor on the run time of a consumer whose nodes are not where it prefers them."""
    # Nodes stand together if all stand where the first one does.
    racks, regions, first = True, True, nodes[0]
    for node in nodes:
        racks &= cloud.place[ONE_RACK, node] == cloud.place[ONE_RACK, first]
        regions &= cloud.place[ONE_REGION, node] == cloud.place[ONE_REGION, first]
    if topology >= ONE_REGION and not regions:
        return ACROSS_REGIONS
    if topology == ONE_RACK and not racks:
        return ACROSS_RACKS
    return 1.0


@njit_inlined
def run_time(cloud: Cloud, topology: int, left: float, nodes: NDArray[np.int64]) -> int:
    """Steps that some work takes on nodes, at least 1.

    The cores do the same work side by side, so all wait for the slowest node.
    """
    speed = cloud.speed[nodes[0]]
    for node in nodes:
        speed = min(speed, cloud.speed[node])
    # A whole quotient must not become the next number because of its last bit.
    return max(1, math.ceil(left * stretch(cloud, topology, nodes) / speed - 1e-9))


@njit_inlined
def is_satisfied(episode: Episode, consumer: int) -> bool:
    """Whether the nodes that a consumer holds satisfy its specification."""
    spec, agent = episode.consumers[consumer], episode.agents[consumer]
    # Each held node is of the right core type: others cannot be caught.
    enough = agent.held_cores >= spec.cores and agent.held_memory >= spec.memory
    return agent.held > 0 and enough


@njit_inlined
def count_free(episode: Episode) -> tuple[int, int, float]:
    """Free nodes: how many, their cores, and what they can do in a step (at speed 1)."""
    cloud = episode.cloud
    num_nodes, cores, work = 0, 0, 0.0
    for node in range(cloud.type.size):
        if episode.nodes[node].holder < 0 and not episode.nodes[node].away:
            num_nodes += 1
            cores += cloud.cores[node]
            work += cloud.cores[node] * cloud.speed[node]
    return num_nodes, cores, work


@njit_inlined
def count_nearest(episode: Episode, scratch: Scratch) -> None:
    """Writes ``scratch.nearest``: how many of those that wait have each type as the nearest."""
    scratch.nearest[:] = 0
    for k in range(episode.progress[0].num_waiting):
        scratch.nearest[episode.types[episode.waiting[k], 0]] += 1


@njit_inlined
def add_up(cloud: Cloud, scratch: Scratch, nodes: NDArray[np.int64]) -> tuple[float, float]:
    """What nodes can do in a step, and how many consumers that wait want one like each of them."""
    work, rivals = 0.0, 0.0
    for node in nodes:
        work += cloud.cores[node] * cloud.speed[node]
        rivals += scratch.nearest[cloud.type[node]]
    return work, rivals


@njit_inlined
def pick(
    offer: Offer, count: int, cores: int, memory: int, most: int, order: int, key: np.uint64
) -> int:
    """Picks nodes until they have so many cores and so much memory.

    Best fit: if one node is enough for what is missing, that with the fewest cores beyond it, else
    that with the most cores of use; memory decides between equals. Fastest: the highest speed, and
    of equally fast ones the best fit.

    The order is `BEST_FIT`, `FASTEST` or `RANDOM`, the key that of its random numbers. Returns how
    many were picked, at most ``most``; 0 if they cannot be enough.
    """
    offer.left[:count] = True
    picked = 0
    while cores > 0 or memory > 0:
        if picked == most:
            return 0
        # The node with the lowest score is next; of equal ones, that with the lowest number.
        best, least = -1, np.inf
        for k in range(count):
            if not offer.left[k]:
                continue
            if order == RANDOM:
                score = uniform(key, offer.node[k])
            elif offer.cores[k] >= cores and offer.memory[k] >= memory:
                score = offer.cores[k] - cores + _MEMORY * (offer.memory[k] - memory)
            else:
                of_use = min(offer.cores[k], max(cores, 0))
                score = _NO_FIT - of_use - _MEMORY * min(offer.memory[k], max(memory, 0))
            if order == FASTEST:
                score -= _SPEED * offer.speed[k]
            if score < least or (score == least and offer.node[k] < offer.node[best]):
                best, least = k, score
        if best < 0:
            return 0
        # What it has is no longer missing.
        offer.left[best] = False
        offer.picked[picked] = best
        picked += 1
        cores -= offer.cores[best]
        memory -= offer.memory[best]
    return picked


@njit_inlined
def free_from(episode: Episode, node: int) -> int:
    """When a node is free as far as is known; `max_time` for one that is away or kept waiting."""
    here = episode.nodes[node]
    if here.away:
        return episode.cloud.max_time
    if here.holder < 0:
        return episode.progress[0].time
    agent = episode.agents[here.holder]
    return agent.finish if agent.stage == RUNNING else episode.cloud.max_time


@njit_inlined
def collect(episode: Episode, scratch: Scratch, consumer: int, search: NodeSearch) -> int:
    """Offers the nodes of a search that are of use to a consumer; returns how many there are."""
    cloud, offer = episode.cloud, scratch.offer
    spec, left = episode.consumers[consumer], episode.agents[consumer].left
    count = 0
    for node in range(cloud.type.size):
        # It must be of use, stand where the search is, and be free in time.
        if scratch.reserved[node] or cloud.speed[node] < search.slowest:
            continue
        if spec.core_type >= 0 and cloud.core_type[node] != spec.core_type:
            continue
        if cloud.place[search.level, node] != search.place:
            continue
        clock, leaves = free_from(episode, node), episode.nodes[node].leaves
        if clock > search.until or clock >= cloud.max_time:
            continue
        # One whose departure is announced has to stay until the consumer is done.
        if leaves >= 0 and leaves < clock + left / cloud.speed[node]:
            continue
        offer.cores[count], offer.memory[count] = cloud.cores[node], cloud.memory[node]
        offer.speed[count], offer.node[count] = cloud.speed[node], node
        count += 1
    return count


@njit_inlined
def complete(
    episode: Episode,
    scratch: Scratch,
    consumer: int,
    search: NodeSearch,
    order: int,
    key: np.uint64,
) -> tuple[int, int]:
    """Picks from the nodes of a search what a consumer lacks beside those that it holds.

    Returns how many nodes ``scratch.tried`` begins with, 0 if there are not enough; and all its
    cores.
    """
    spec, agent = episode.consumers[consumer], episode.agents[consumer]
    count = collect(episode, scratch, consumer, search)
    cores, memory = spec.cores - agent.held_cores, spec.memory - agent.held_memory
    most = episode.cloud.held - agent.held
    picked = pick(scratch.offer, count, cores, memory, most, order, key)
    # Places of the offer become numbers of nodes.
    cores = agent.held_cores
    for k in range(picked):
        scratch.tried[k] = scratch.offer.node[scratch.offer.picked[k]]
        cores += episode.cloud.cores[scratch.tried[k]]
    return picked, cores


@njit_inlined
def choose_tried(scratch: Scratch, picked: int) -> None:
    """Makes what was tried the best set so far."""
    for k in range(picked):  # a kernel that allocates nothing copies by hand
        scratch.chosen[k] = scratch.tried[k]


@njit_inlined
def fit(episode: Episode, scratch: Scratch, consumer: int, order: int, key: np.uint64) -> int:
    """Chooses free nodes where the consumer prefers them, or anywhere if there are not enough.

    Of several racks or regions, best fit takes that with the fewest cores beyond the demand, and
    fastest fit that with the shortest run time. Returns how many nodes ``scratch.chosen`` begins
    with; 0 if it has to wait.
    """
    cloud, spec = episode.cloud, episode.consumers[consumer]
    left, now = episode.agents[consumer].left, episode.progress[0].time
    level = ANYWHERE if order == RANDOM else spec.topology  # random does not ask for the place
    chosen, least = ZERO, np.inf
    # In one rack, else in one region, else anywhere.
    while chosen == 0 and level >= ANYWHERE:
        for place in range(cloud.num_places[level]):
            search = NodeSearch(level, place, now, 0.0)
            picked, cores = complete(episode, scratch, consumer, search, order, key)
            score = 1.0 * cores
            if picked and order == FASTEST:
                score += _LARGE * run_time(cloud, spec.topology, left, scratch.tried[:picked])
            if picked and score < least:
                least, chosen = score, picked
                choose_tried(scratch, picked)
        level -= 1
    return chosen


@njit_inlined
def finish_early(episode: Episode, scratch: Scratch, consumer: int) -> tuple[int, int]:
    """Chooses the nodes, free now or later, on which a consumer is done first.

    Tried are all nodes, those of each region and each rack, those of at least each speed, and those
    that are free by now and by each finish of a consumer that runs. Of equally early finishes the
    earliest start counts, then the fewest cores. Returns how many nodes ``scratch.chosen`` begins
    with, 0 if none will do; and when all are free.
    """
    cloud, spec = episode.cloud, episode.consumers[consumer]
    left, now = episode.agents[consumer].left, episode.progress[0].time
    chosen, begin, least = ZERO, now, np.inf
    for level in range(spec.topology, ANYWHERE - 1, -1):
        for place in range(cloud.num_places[level]):
            for slowest in cloud.type_speed:
                for k in range(-1, episode.progress[0].num_running):
                    until = now if k < 0 else episode.agents[episode.running[k]].finish
                    search = NodeSearch(level, place, until, slowest)
                    picked, cores = complete(episode, scratch, consumer, search, _BEST_FIT, _NO_KEY)
                    if picked == 0:
                        continue
                    # It can start when the last of them is free.
                    start = now
                    for i in range(picked):
                        start = max(start, free_from(episode, scratch.tried[i]))
                    steps = run_time(cloud, spec.topology, left, scratch.tried[:picked])
                    score = _LARGE * (start + steps) + 10.0 * (start - now) + cores / 1e4
                    if score < least:
                        least, chosen, begin = score, picked, start
                        choose_tried(scratch, picked)
    return chosen, begin


@njit_inlined
def propose(episode: Episode, scratch: Scratch, consumer: int) -> bool:
    """Finds the plans of a consumer: what it holds, and free nodes that are not reserved.

    Tried are sets of each rack, each region and all nodes, of at least each speed, by best fit.
    Returns whether there is any. ``scratch.members`` has the nodes of each of `PLANS` that are to
    be caught, and ``scratch.facts`` what states show of it, with the nodes that are held.
    """
    cloud, spec = episode.cloud, episode.consumers[consumer]
    scratch.least[:] = np.inf
    for level in range(spec.topology, ANYWHERE - 1, -1):
        for place in range(cloud.num_places[level]):
            for slowest in cloud.type_speed:
                search = NodeSearch(level, place, episode.progress[0].time, slowest)
                picked, cores = complete(episode, scratch, consumer, search, _BEST_FIT, _NO_KEY)
                if picked:
                    keep_best(episode, scratch, consumer, picked, cores)
    return scratch.least[_FAST] < np.inf


@njit_inlined
def keep_best(episode: Episode, scratch: Scratch, consumer: int, picked: int, cores: int) -> None:
    """Makes what was tried each of the plans that it is better than."""
    agent = episode.agents[consumer]
    # What is held belongs to each plan.
    for k in range(agent.held):
        scratch.tried[picked + k] = episode.held[consumer, k]
    nodes = scratch.tried[: picked + agent.held]
    work, rivals = add_up(episode.cloud, scratch, nodes)
    steps = run_time(episode.cloud, episode.consumers[consumer].topology, agent.left, nodes)
    # Of equally tight ones the shortest run counts, of equally fast ones the tightest.
    ranks = (cores * _LARGE + steps, steps * _LARGE + cores, work * steps)
    for p in range(len(PLANS)):
        if ranks[p] < scratch.least[p]:
            scratch.least[p], scratch.num_members[p] = ranks[p], picked
            fact = scratch.facts[p]
            fact[PLAN_SEEN.nodes], fact[PLAN_SEEN.cores] = nodes.size, cores
            fact[PLAN_SEEN.work], fact[PLAN_SEEN.steps] = np.int64(work), steps
            fact[PLAN_SEEN.wanted] = np.int64(100 * rivals / nodes.size)
            for k in range(picked):
                scratch.members[p, k] = scratch.tried[k]
