"""What an agent sees: its specification, what it holds, and the nodes that pass its filter."""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import (
    HEADER,
    NODE_SEEN,
    NODES_AT,
    PLAN_SEEN,
    PLANS,
    Cloud,
    Episodes,
    Jobs,
)
from cluster_env.worlds.panda.consumers import ANYWHERE, ONE_RACK
from cluster_env.worlds.panda.holding import is_free, run_time, satisfy
from cluster_env.worlds.panda.planning import Plan, free_work
from cluster_env.worlds.panda.proposing import add_up, count_wanted, propose

AT, SIZE = NODES_AT, len(NODE_SEEN)
PLANS_AT, NUM_PLANS, PLAN_SIZE = len(HEADER), len(PLANS), len(PLAN_SEEN)


@njit_inlined
def is_near(c: Cloud, topology: int, node: int, other: int) -> bool:
    """Whether a node stands where a consumer wants it that holds another one."""
    if topology == ONE_RACK:
        return c.rack[node] == c.rack[other]
    return topology == ANYWHERE or c.region[node] == c.region[other]


@njit_inlined
def pay_attention(c: Cloud, jobs: Jobs, e: Episodes, episode: int, row: int) -> None:
    """Fills the row's ``shown``: free nodes of the types that pass the filter, nearest type first.

    Nodes that stand where the consumer wants them, beside the first one that it holds, come before
    all others.
    """
    job = e.of[episode].first + row - e.of[episode].row
    topology, shown, count = jobs.of[job].topology, e.shown[row], 0
    shown[:] = -1
    beside = e.held[row, 0] if e.agent[row].held and topology != ANYWHERE else -1
    for near in range(1 if beside >= 0 else 0, -1, -1):
        for t in range(jobs.of[job].num_types):
            kind = jobs.types[job, t]
            for node in range(c.first[kind], c.first[kind + 1]):
                if count == c.observed:
                    return
                if not is_free(e, episode, node):
                    continue
                if beside < 0 or is_near(c, topology, node, beside) == (near == 1):
                    shown[count] = node
                    count += 1


@njit_inlined
def write_node(
    c: Cloud, e: Episodes, episode: int, row: int, node: int, out: NDArray[np.int32]
) -> None:
    """Writes what a state has of a node."""
    out[0], out[1], out[2] = 1, c.cores[node], c.memory[node]
    out[3] = np.int32(math.floor(100 * c.speed[node] + 0.5))
    out[4] = out[5] = 0
    if e.agent[row].held:
        first = e.held[row, 0]
        out[4] = c.rack[node] == c.rack[first]
        out[5] = c.region[node] == c.region[first]
    leaves = e.node[episode, node].leaves
    out[6] = 0 if leaves < 0 else 1 + leaves - e.of[episode].time


@njit_inlined
def look(c: Cloud, jobs: Jobs, e: Episodes, episode: int, plan: Plan) -> None:
    """Writes the states of all agents of an episode that wait."""
    at = e.of[episode]
    free_nodes, free_cores, waiting_cores = 0, 0, 0
    for node in range(c.type.size):
        if is_free(e, episode, node):
            free_nodes += 1
            free_cores += c.cores[node]
    for k in range(at.num_waiting):
        waiting_cores += jobs.of[at.first + e.waiting[at.row + k]].cores
    free = np.int64(free_work(c, e, episode))
    count_wanted(jobs, e, episode, plan)
    for k in range(at.num_waiting):
        consumer = e.waiting[at.row + k]
        row, job = at.row + consumer, at.first + consumer
        agent, spec, state = e.agent[row], jobs.of[job], e.states[row]
        pay_attention(c, jobs, e, episode, row)
        state[0], state[1] = at.time - spec.arrival, np.int64(math.ceil(agent.left - 1e-9))
        state[2], state[3], state[4] = spec.cores, spec.memory, 1 + spec.core_type
        state[5], state[6], state[7] = spec.topology, agent.held_cores, agent.held_memory
        state[8], state[9], state[10] = agent.held, free_nodes, free_cores
        state[11], state[12], state[13] = at.num_waiting, waiting_cores, at.num_running
        nodes = e.held[row, : agent.held]
        state[14] = k
        state[15] = satisfy(c, jobs, job, nodes, agent.held_cores, agent.held_memory)
        state[16] = free
        state[PLANS_AT:] = 0
        for place in range(c.observed):
            if e.shown[row, place] < 0:
                break
            seen = state[AT + place * SIZE : AT + (place + 1) * SIZE]
            write_node(c, e, episode, row, e.shown[row, place], seen)
        for place in range(agent.held):
            begin = AT + (c.observed + place) * SIZE
            write_node(c, e, episode, row, nodes[place], state[begin : begin + SIZE])
        if state[15]:
            write_own_plan(c, jobs, e, episode, consumer, plan, state)
        elif free > 0:
            write_plans(c, jobs, e, episode, consumer, plan, state)


@njit_inlined
def write_own_plan(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    consumer: int,
    plan: Plan,
    out: NDArray[np.int32],
) -> None:
    """Writes what a state has of plans where the nodes that are held are enough: all are these."""
    at = e.of[episode]
    agent, spec = e.agent[at.row + consumer], jobs.of[at.first + consumer]
    nodes = e.held[at.row + consumer, : agent.held]
    work, wanted = add_up(c, plan, nodes)
    for p in range(NUM_PLANS):
        seen = out[PLANS_AT + p * PLAN_SIZE : PLANS_AT + (p + 1) * PLAN_SIZE]
        seen[0], seen[1], seen[2] = agent.held, agent.held_cores, np.int64(work)
        seen[3] = run_time(c, spec.topology, agent.left, nodes)
        seen[4] = np.int32(100 * wanted / agent.held)


@njit_inlined
def write_plans(
    c: Cloud,
    jobs: Jobs,
    e: Episodes,
    episode: int,
    consumer: int,
    plan: Plan,
    out: NDArray[np.int32],
) -> None:
    """Writes what a state has of the plans among the nodes that the agent sees."""
    shown = e.shown[e.of[episode].row + consumer]
    plan.taken[:] = True
    for place in range(c.observed):
        if shown[place] < 0:
            break
        plan.taken[shown[place]] = False
    if not propose(c, jobs, e, episode, consumer, plan):
        return
    for p in range(NUM_PLANS):
        for fact in range(PLAN_SIZE):
            out[PLANS_AT + p * PLAN_SIZE + fact] = plan.facts[p, 1 + fact]
        for k in range(plan.facts[p, 0]):
            place = 0
            while shown[place] != plan.sets[p, k]:
                place += 1
            out[AT + place * SIZE + 7] += 1 << p
