"""What networks see: nodes, the specification, and the plans that the supervisor proposes."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.compiled import ZERO, njit_inlined, njit_kernel
from cluster_env.worlds.panda.consumers import ONE_RACK, ONE_REGION
from cluster_env.worlds.panda.plans import pick
from cluster_env.worlds.panda.state import (
    HEADER,
    NODE_SEEN,
    NODE_SIZE,
    NODES_AT,
    PLAN_SEEN,
    PLAN_SIZE,
    PLANS,
    PLANS_AT,
    Offer,
    state_space,
)

_HALF_STEPS, _HALF_AGENTS = 32.0, 8.0
"""Steps and agents of which a feature n / (n + these) is a half."""


class ItemColumns(NamedTuple):
    """Features of a node, all from 0 to 1; sizes are over the largest of the cloud.

    The last two are what an agent does that follows this rule by itself, so that actors that decide
    on each node by itself need not find out which are enough.
    """

    present: int
    held: int  # 1 for a node that the agent holds, and may release
    cores: int
    memory: int
    speed: int
    same_rack: int  # as its first held node
    same_region: int
    leaves_soon: int  # 1 / (1 + steps until it leaves), 0 if none is announced
    share_of_cores: int  # of the demand, at most 1
    best_fit: int  # whether it would be caught or released
    fastest_fit: int


class ContextColumns(NamedTuple):
    """Features of the context, all from 0 to 1."""

    waited: int  # n / (n + 32) steps, as the next one
    left: int
    cores: int  # n / (n + those of the largest node), as the next one
    memory: int
    any_core: int  # whether every core type will do
    core_type: int  # its number over their number
    one_region: int  # where nodes are preferred
    one_rack: int
    held_cores: int  # share of the demand, at most 1, as the next one
    held_memory: int
    free_nodes: int  # of all nodes
    free_cores: int  # of all cores
    waiting: int  # agents, n / (n + 8)
    waiting_cores: int  # n / (n + cores of the cloud)
    running: int  # agents, n / (n + 8), as the next one
    ahead: int
    satisfied: int


class PairColumns(NamedTuple):
    """Features of a pair: a consumer, and nodes that satisfy it, those that it holds among them."""

    left: int  # log2 of the steps at speed 1 that are left to do, less 4
    cores: int  # log2 of the cores that are asked for, less 2
    waited: int  # log2(1 + steps), less 4
    stretched: int  # log2(1 + steps waited over those left), at most 8
    one_region: int  # 1 if the consumer prefers that, as the next two
    one_rack: int
    core_type: int
    slow: int  # log2 of the run time on these nodes over the steps left
    excess: int  # log2 of the cores that they have over those that are asked for
    capacity: int  # log2 of what they could do in the run time over the work of the consumer
    share: int  # what they can do over what they and all free nodes can
    nodes: int  # log2 of their number
    exposure: int  # their number times the run time, over 100
    wanted: int  # log2(1 + consumers that wait for whom a type is nearest), less 2, a mean
    busy: int  # log2(1 + consumers that wait), less 3; then products, and 1
    busy_left: int
    busy_slow: int
    busy_excess: int
    cores_slow: int
    left_slow: int
    cores_excess: int
    left_excess: int
    cores_cores: int
    left_left: int
    left_cores: int
    constant: int


ITEM = ItemColumns(*range(len(ItemColumns._fields)))
CONTEXT = ContextColumns(*range(len(ContextColumns._fields)))
COLUMN = PairColumns(*range(len(PairColumns._fields)))

PAIR = PairColumns._fields
"""Names of the features of a pair, by which a central scorer and agents judge plans."""

START = {"left": -2.0, "excess": -0.5, "slow": -0.3, "constant": 10.0}
"""The shortest first, on nodes that fit, nearly: weights that a search begins with."""


class RequestFeatures(NamedTuple):
    """What the features of a pair say of the consumer."""

    left: float  # steps at speed 1
    cores: int  # that are asked for
    waited: int  # steps
    topology: int
    is_picky: bool  # whether it insists on a core type
    waiting: int  # consumers that wait
    free_work: float  # cores x speed of all free nodes


class Largest(NamedTuple):
    """What sizes are divided by: those of the largest nodes of the cloud, and of all."""

    cores: float
    memory: float
    speed: float  # in hundredths
    num_core_types: float
    num_nodes: float
    num_cores: float


class Proposals(NamedTuple):
    """Plans of agents, see `state.PLANS`."""

    pairs: NDArray[np.float32]  # (n, plans, pair features), see `PairColumns`; 0 without a plan
    members: NDArray[np.bool_]  # (n, plans, observed + held): nodes that are to be caught
    possible: NDArray[np.bool_]  # (n, plans): whether there is one


@njit_inlined
def write_context(state: NDArray[np.int32], largest: Largest, out: NDArray[np.float32]) -> None:
    """Writes the context of a state, see `ContextColumns`."""
    # The specification.
    out[CONTEXT.waited] = state[HEADER.waited] / (state[HEADER.waited] + _HALF_STEPS)
    out[CONTEXT.left] = state[HEADER.left] / (state[HEADER.left] + _HALF_STEPS)
    out[CONTEXT.cores] = state[HEADER.cores] / (state[HEADER.cores] + largest.cores)
    # Clouds and consumers may be without any memory.
    out[CONTEXT.memory] = state[HEADER.memory] / (state[HEADER.memory] + largest.memory + 1e-9)
    out[CONTEXT.any_core] = state[HEADER.core_type] == 0
    out[CONTEXT.core_type] = state[HEADER.core_type] / largest.num_core_types
    out[CONTEXT.one_region] = state[HEADER.topology] == ONE_REGION
    out[CONTEXT.one_rack] = state[HEADER.topology] == ONE_RACK
    # What is held of it, and what is free; an agent that has not come yet asks for nothing.
    cores, memory = max(state[HEADER.cores], 1), max(state[HEADER.memory], 1)
    out[CONTEXT.held_cores] = min(state[HEADER.held_cores] / cores, 1.0)
    out[CONTEXT.held_memory] = min(state[HEADER.held_memory] / memory, 1.0)
    out[CONTEXT.free_nodes] = state[HEADER.free_nodes] / largest.num_nodes
    out[CONTEXT.free_cores] = state[HEADER.free_cores] / largest.num_cores
    # The others.
    waiting_cores = state[HEADER.waiting_cores]
    out[CONTEXT.waiting] = state[HEADER.waiting] / (state[HEADER.waiting] + _HALF_AGENTS)
    out[CONTEXT.waiting_cores] = waiting_cores / (waiting_cores + largest.num_cores)
    out[CONTEXT.running] = state[HEADER.running] / (state[HEADER.running] + _HALF_AGENTS)
    out[CONTEXT.ahead] = state[HEADER.ahead] / (state[HEADER.ahead] + _HALF_AGENTS)
    out[CONTEXT.satisfied] = state[HEADER.satisfied]


@njit_inlined
def write_item(
    node: NDArray[np.int32], cores: int, largest: Largest, out: NDArray[np.float32]
) -> None:
    """Writes the features of a node that is there, but for the last two and ``held``.

    The node is the part of a state, `NODE_SEEN`; the cores are those that are asked for.
    """
    out[ITEM.present] = 1.0
    out[ITEM.cores] = node[NODE_SEEN.cores] / largest.cores
    out[ITEM.memory] = node[NODE_SEEN.memory] / max(largest.memory, 1.0)
    out[ITEM.speed] = node[NODE_SEEN.speed] / largest.speed
    out[ITEM.same_rack] = node[NODE_SEEN.same_rack]
    out[ITEM.same_region] = node[NODE_SEEN.same_region]
    out[ITEM.leaves_soon] = 1.0 / node[NODE_SEEN.notice] if node[NODE_SEEN.notice] else 0.0
    out[ITEM.share_of_cores] = min(node[NODE_SEEN.cores] / cores, 1.0)


@njit_kernel
def describe(
    states: NDArray[np.int32],
    observed: int,
    largest: Largest,
    best_fit: NDArray[np.int8],
    fastest_fit: NDArray[np.int8],
    items: NDArray[np.float32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
) -> None:
    """Fills features of states; see `ItemColumns`, `ContextColumns` and `Panda.features`.

    The places of so many observed nodes come before those of held ones. What an agent would do by
    either rule is int8 ``(n, num_actions)``.
    """
    items[:] = 0.0
    for i in range(states.shape[0]):
        state = states[i]
        write_context(state, largest, context[i])
        for k in range(items.shape[1]):
            node = state[NODES_AT + k * NODE_SIZE : NODES_AT + (k + 1) * NODE_SIZE]
            allowed[i, k] = node[NODE_SEEN.present] > 0
            if node[NODE_SEEN.present]:
                item = items[i, k]
                write_item(node, state[HEADER.cores], largest, item)
                item[ITEM.held] = k >= observed
                item[ITEM.best_fit], item[ITEM.fastest_fit] = best_fit[i, k], fastest_fit[i, k]
        allowed[i, items.shape[1]] = True  # to wait


@njit_kernel
def decide_alone(
    states: NDArray[np.int32],
    order: int,
    observed: int,
    held: int,
    offer: Offer,
    bits: NDArray[np.int8],
) -> None:
    """What agents would do that follow a rule by themselves, by what they see.

    Each catches what it would pick among the nodes that it sees for what it is missing, and starts
    as soon as it can. Where they are not enough, it releases what it holds.

    Of ``observed`` nodes that a state shows it picks in an order (`plans.pick`), and it may hold
    ``held``. Bits are written, int8 ``(n, observed + held + 1)``.
    """
    bits[:] = 0
    for i in range(states.shape[0]):
        state, count = states[i], ZERO
        if state[HEADER.satisfied]:
            continue
        # The nodes that it sees are its offer, called by their places.
        for k in range(observed):
            node = state[NODES_AT + k * NODE_SIZE : NODES_AT + (k + 1) * NODE_SIZE]
            if node[NODE_SEEN.present]:
                offer.cores[count], offer.memory[count] = (
                    node[NODE_SEEN.cores],
                    node[NODE_SEEN.memory],
                )
                offer.speed[count], offer.node[count] = node[NODE_SEEN.speed], k
                count += 1
        # It picks for what is missing, or gives up.
        cores = state[HEADER.cores] - state[HEADER.held_cores]
        memory = state[HEADER.memory] - state[HEADER.held_memory]
        picked = pick(
            offer, count, cores, memory, held - state[HEADER.held_nodes], order, np.uint64(0)
        )
        for k in range(picked):
            bits[i, offer.node[offer.picked[k]]] = 1
        if picked == 0:
            bits[i, observed : observed + state[HEADER.held_nodes]] = 1


@njit_inlined
def write_pair(
    request: RequestFeatures, plan: NDArray[np.signedinteger[Any]], out: NDArray[np.floating[Any]]
) -> None:
    """Writes the features of a pair: a consumer, and a plan with the columns `PLAN_SEEN`."""
    nodes, cores, steps = plan[PLAN_SEEN.nodes], plan[PLAN_SEEN.cores], plan[PLAN_SEEN.steps]
    work, rivals = np.float64(plan[PLAN_SEEN.work]), plan[PLAN_SEEN.wanted] / 100.0
    size, wide = math.log2(max(request.left, 1e-3)) - 4.0, math.log2(max(request.cores, 1)) - 2.0
    slow, excess = math.log2(steps) - size - 4.0, math.log2(cores) - wide - 2.0
    busy = math.log2(1.0 + request.waiting) - 3.0
    # The consumer.
    out[COLUMN.left], out[COLUMN.cores] = size, wide
    out[COLUMN.waited] = math.log2(1.0 + request.waited) - 4.0
    out[COLUMN.stretched] = min(math.log2(1.0 + request.waited / max(request.left, 1e-3)), 8.0)
    out[COLUMN.one_region] = request.topology == ONE_REGION
    out[COLUMN.one_rack] = request.topology == ONE_RACK
    out[COLUMN.core_type] = request.is_picky
    # The nodes for it.
    out[COLUMN.slow], out[COLUMN.excess] = slow, excess
    out[COLUMN.capacity] = math.log2(work * steps) - size - wide - 6.0
    out[COLUMN.share], out[COLUMN.nodes] = work / (work + request.free_work), math.log2(nodes)
    out[COLUMN.exposure] = nodes * steps / 100.0
    out[COLUMN.wanted] = math.log2(1.0 + rivals) - 2.0
    # Products, by which a linear score can weigh one thing the more, the more there is of another.
    out[COLUMN.busy], out[COLUMN.busy_left] = busy, busy * size
    out[COLUMN.busy_slow], out[COLUMN.busy_excess] = busy * slow, busy * excess
    out[COLUMN.cores_slow], out[COLUMN.left_slow] = wide * slow, size * slow
    out[COLUMN.cores_excess], out[COLUMN.left_excess] = wide * excess, size * excess
    out[COLUMN.cores_cores], out[COLUMN.left_left] = wide * wide, size * size
    out[COLUMN.left_cores], out[COLUMN.constant] = size * wide, 1.0


@njit_inlined
def write_seen(state: NDArray[np.int32], p: int, out: NDArray[np.floating[Any]]) -> bool:
    """Writes the features of the p-th of `PLANS` that a state shows; whether there is one."""
    plan = state[PLANS_AT + p * PLAN_SIZE : PLANS_AT + (p + 1) * PLAN_SIZE]
    if plan[PLAN_SEEN.nodes] == 0:
        return False
    request = RequestFeatures(
        np.float64(state[HEADER.left]),
        state[HEADER.cores],
        state[HEADER.waited],
        state[HEADER.topology],
        state[HEADER.core_type] > 0,
        state[HEADER.waiting],
        np.float64(state[HEADER.free_work]),
    )
    write_pair(request, plan, out)
    return True


@njit_kernel
def write_proposals(
    states: NDArray[np.int32],
    pairs: NDArray[np.float32],
    members: NDArray[np.bool_],
    possible: NDArray[np.bool_],
) -> None:
    """Fills the fields of `Proposals`, which are 0 before."""
    for i in range(states.shape[0]):
        for p in range(pairs.shape[1]):
            possible[i, p] = write_seen(states[i], p, pairs[i, p])
            for k in range(members.shape[2] if possible[i, p] else 0):
                plans = states[i, NODES_AT + k * NODE_SIZE + NODE_SEEN.plans]
                members[i, p, k] = (plans >> p) & 1


def proposals(states: NDArray[np.int32], num_items: int) -> Proposals:
    """The plans of states with so many places of nodes, observed and held.

    Raises:
        InputError: for states of another world.
    """
    require_states(states, state_space(num_items))
    n, num_plans = states.shape[0], len(PLANS)
    written = Proposals(
        np.zeros((n, num_plans, len(PAIR)), np.float32),
        np.zeros((n, num_plans, num_items), np.bool_),
        np.zeros((n, num_plans), np.bool_),
    )
    write_proposals(np.ascontiguousarray(states), *written)
    return written
