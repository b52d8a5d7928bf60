"""What an agent sees: its specification, what it holds, nodes that pass its filter, and plans."""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import ZERO, njit_inlined
from cluster_env.worlds.panda.consumers import ANYWHERE, ONE_RACK, ONE_REGION
from cluster_env.worlds.panda.plans import (
    count_free,
    count_nearest,
    is_satisfied,
    keep_best,
    propose,
)
from cluster_env.worlds.panda.state import (
    HEADER,
    NODE_SEEN,
    NODE_SIZE,
    NODES_AT,
    PLAN_SIZE,
    PLANS,
    PLANS_AT,
    Episode,
    Scratch,
)


@njit_inlined
def filter_attention(episode: Episode, consumer: int) -> None:
    """Shows an agent free nodes of the types that pass its filter, those of the nearest type first.

    Nodes that stand where the consumer prefers them, beside the first one that it holds, come
    before all others.
    """
    cloud, spec, shown = episode.cloud, episode.consumers[consumer], episode.shown[consumer]
    shown[:] = -1
    has_place = spec.topology != ANYWHERE and episode.agents[consumer].held > 0
    place, first, count = cloud.place[spec.topology], episode.held[consumer, 0], 0
    # Those beside its first node, then the others; all at once where that does not matter.
    for near in range(1 if has_place else 0, -1, -1):
        for k in range(spec.num_types):
            kind = episode.types[consumer, k]
            for node in range(cloud.first_of_type[kind], cloud.first_of_type[kind + 1]):
                if count == cloud.observed:
                    return
                if episode.nodes[node].holder >= 0 or episode.nodes[node].away:
                    continue
                if not has_place or (place[node] == place[first]) == (near == 1):
                    shown[count] = node
                    count += 1


@njit_inlined
def write_node(episode: Episode, consumer: int, node: int, out: NDArray[np.int32]) -> None:
    """Writes what a state has of a node."""
    cloud, leaves = episode.cloud, episode.nodes[node].leaves
    out[NODE_SEEN.present] = 1
    out[NODE_SEEN.cores], out[NODE_SEEN.memory] = cloud.cores[node], cloud.memory[node]
    out[NODE_SEEN.speed] = np.int32(math.floor(100 * cloud.speed[node] + 0.5))
    if episode.agents[consumer].held:
        first = episode.held[consumer, 0]
        out[NODE_SEEN.same_rack] = cloud.place[ONE_RACK, node] == cloud.place[ONE_RACK, first]
        same_region = cloud.place[ONE_REGION, node] == cloud.place[ONE_REGION, first]
        out[NODE_SEEN.same_region] = same_region
    out[NODE_SEEN.notice] = 0 if leaves < 0 else 1 + leaves - episode.progress[0].time


@njit_inlined
def write_plans(
    episode: Episode, scratch: Scratch, consumer: int, state: NDArray[np.int32]
) -> None:
    """Writes what a state has of the plans among the nodes that the agent sees."""
    shown = episode.shown[consumer]
    if state[HEADER.satisfied]:
        # All plans are what it holds.
        scratch.least[:] = np.inf
        keep_best(episode, scratch, consumer, ZERO, episode.agents[consumer].held_cores)
    else:
        # Nodes that it does not see are none for it.
        scratch.reserved[:] = True
        for place in range(shown.size):
            if shown[place] < 0:
                break
            scratch.reserved[shown[place]] = False
        if not propose(episode, scratch, consumer):
            return
    for p in range(len(PLANS)):
        for k in range(PLAN_SIZE):
            state[PLANS_AT + p * PLAN_SIZE + k] = scratch.facts[p, k]
        # Each node has a bit for each plan that it belongs to.
        for k in range(scratch.num_members[p]):
            place = 0
            while shown[place] != scratch.members[p, k]:
                place += 1
            state[NODES_AT + place * NODE_SIZE + NODE_SEEN.plans] += 1 << p


@njit_inlined
def observe(episode: Episode, scratch: Scratch) -> None:
    """Writes the states of all agents of an episode that wait."""
    cloud, progress = episode.cloud, episode.progress[0]
    free_nodes, free_cores, work = count_free(episode)
    # What is the same for all: free nodes, and who waits.
    free_work, waiting_cores = np.int64(work), 0
    for k in range(progress.num_waiting):
        waiting_cores += episode.consumers[episode.waiting[k]].cores
    count_nearest(episode, scratch)
    for k in range(progress.num_waiting):
        consumer = episode.waiting[k]
        agent, spec = episode.agents[consumer], episode.consumers[consumer]
        state = episode.states[consumer]
        # The specification, and what is held of it.
        state[HEADER.waited] = progress.time - spec.arrival
        state[HEADER.left] = np.int64(math.ceil(agent.left - 1e-9))
        state[HEADER.cores], state[HEADER.memory] = spec.cores, spec.memory
        state[HEADER.core_type], state[HEADER.topology] = 1 + spec.core_type, spec.topology
        state[HEADER.held_cores] = agent.held_cores
        state[HEADER.held_memory] = agent.held_memory
        state[HEADER.held_nodes] = agent.held
        # The others, and what is free.
        state[HEADER.free_nodes], state[HEADER.free_cores] = free_nodes, free_cores
        state[HEADER.waiting], state[HEADER.waiting_cores] = progress.num_waiting, waiting_cores
        state[HEADER.running], state[HEADER.ahead] = progress.num_running, k
        state[HEADER.free_work] = free_work
        # Nodes to catch, then nodes to release.
        state[PLANS_AT:] = 0
        filter_attention(episode, consumer)
        for place in range(cloud.observed):
            if episode.shown[consumer, place] < 0:
                break
            seen = state[NODES_AT + place * NODE_SIZE : NODES_AT + (place + 1) * NODE_SIZE]
            write_node(episode, consumer, episode.shown[consumer, place], seen)
        for place in range(cloud.observed, cloud.observed + agent.held):
            seen = state[NODES_AT + place * NODE_SIZE : NODES_AT + (place + 1) * NODE_SIZE]
            write_node(episode, consumer, episode.held[consumer, place - cloud.observed], seen)
        # Whether it could start, and plans by which it can.
        state[HEADER.satisfied] = is_satisfied(episode, consumer)
        if state[HEADER.satisfied] or free_work > 0:
            write_plans(episode, scratch, consumer, state)
