"""What agents do with nodes: catch, release, start, and what a lost node does to them."""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import (
    DONE,
    MEAN,
    RESTART,
    RUNNING,
    WAITING,
    Cloud,
    Episodes,
    Jobs,
)
from cluster_env.worlds.panda.consumers import ONE_RACK, ONE_REGION


@njit_inlined
def cost(jobs: Jobs, job: int, elapsed: int) -> float:
    """What a consumer has cost after so many steps in the system."""
    total = jobs.of[job].rate * elapsed
    for k in range(jobs.late_rate.shape[0]):
        total += jobs.late_rate[k, job] * max(elapsed - jobs.late_after[k, job], 0)
    return total


@njit_inlined
def paid_at_finish(c: Cloud, jobs: Jobs, job: int, finish: int) -> float:
    """Cost until a planned finish, less what that gains; an episode is cut at `max_time`."""
    until = min(finish, c.max_time)
    gain = jobs.of[job].finish_gain if finish <= c.max_time else 0.0
    return cost(jobs, job, until - jobs.of[job].arrival) - gain


@njit_inlined
def stretch(c: Cloud, topology: int, nodes: NDArray[np.int64]) -> float:
    """Factor on the run time of a consumer whose nodes are not where it wants them."""
    racks, regions = True, True
    for k in range(1, nodes.size):
        racks &= c.rack[nodes[k]] == c.rack[nodes[0]]
        regions &= c.region[nodes[k]] == c.region[nodes[0]]
    if topology >= ONE_REGION and not regions:
        return c.across_regions
    if topology == ONE_RACK and not racks:
        return c.across_racks
    return 1.0


@njit_inlined
def satisfy(
    c: Cloud, jobs: Jobs, job: int, nodes: NDArray[np.int64], cores: int, memory: int
) -> bool:
    """Whether nodes with so many cores and so much memory satisfy a specification."""
    spec = jobs.of[job]
    if nodes.size == 0 or cores < spec.cores or memory < spec.memory:
        return False
    return not c.strict or stretch(c, spec.topology, nodes) == 1.0


@njit_inlined
def run_time(c: Cloud, topology: int, left: float, nodes: NDArray[np.int64]) -> int:
    """Steps that some work takes on nodes, at least 1.

    The cores do the same work side by side: with `SLOWEST` all wait for the slowest node, with
    `MEAN` the work is shared out, so that they are as fast as their cores are in the mean.
    """
    speed, cores = c.speed[nodes[0]], 0
    if c.pace == MEAN:
        speed = 0.0
        for node in nodes:
            speed += c.speed[node] * c.cores[node]
            cores += c.cores[node]
        speed /= cores
    else:
        for node in nodes:
            speed = min(speed, c.speed[node])
    # A whole quotient must not become the next number because of its last bit.
    return max(1, math.ceil(left * stretch(c, topology, nodes) / speed - 1e-9))


@njit_inlined
def is_free(e: Episodes, episode: int, node: int) -> bool:
    """Whether a node is there and nobody holds it."""
    at = e.node[episode, node]
    return at.away == 0 and at.holder < 0


@njit_inlined
def can_catch(c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int, node: int) -> bool:
    """Whether a node is there and free, and of the consumer's core type."""
    wanted = jobs.of[e.of[episode].first + consumer].core_type
    return is_free(e, episode, node) and (wanted < 0 or c.core_type[node] == wanted)


@njit_inlined
def catch(c: Cloud, e: Episodes, episode: int, consumer: int, node: int) -> None:
    """Gives a free node to a consumer that waits and has room for it."""
    agent = e.agent[e.of[episode].row + consumer]
    if agent.held == 0:
        agent.since = e.of[episode].time
    e.held[e.of[episode].row + consumer, agent.held] = node
    agent.held += 1
    agent.held_cores += c.cores[node]
    agent.held_memory += c.memory[node]
    e.node[episode, node].holder = consumer


@njit_inlined
def let_go(c: Cloud, e: Episodes, episode: int, consumer: int, node: int) -> None:
    """Takes a node back from its holder."""
    row = e.of[episode].row + consumer
    agent, held = e.agent[row], e.held[row]
    k = 0
    while held[k] != node:
        k += 1
    for i in range(k, agent.held - 1):  # the order of catches is kept: agents see it
        held[i] = held[i + 1]
    agent.held -= 1
    agent.held_cores -= c.cores[node]
    agent.held_memory -= c.memory[node]
    e.node[episode, node].holder = -1


@njit_inlined
def let_all_go(e: Episodes, episode: int, consumer: int) -> None:
    """Takes all nodes back from their holder."""
    row = e.of[episode].row + consumer
    agent = e.agent[row]
    for k in range(agent.held):
        e.node[episode, e.held[row, k]].holder = -1
    agent.held, agent.held_cores, agent.held_memory = 0, 0, 0


@njit_inlined
def enqueue(e: Episodes, episode: int, consumer: int) -> None:
    """Lets a consumer wait; those that wait stand in the order of their arrival."""
    at, row = e.of[episode], e.of[episode].row
    k = at.num_waiting
    while k > 0 and e.waiting[row + k - 1] > consumer:
        e.waiting[row + k] = e.waiting[row + k - 1]
        k -= 1
    e.waiting[row + k] = consumer
    at.num_waiting += 1
    e.agent[row + consumer].stage = WAITING
    e.active[row + consumer] = True


@njit_inlined
def dequeue(e: Episodes, episode: int, consumer: int) -> None:
    """Takes a consumer out of those that wait."""
    at, row = e.of[episode], e.of[episode].row
    k = 0
    while e.waiting[row + k] != consumer:
        k += 1
    for i in range(k, at.num_waiting - 1):
        e.waiting[row + i] = e.waiting[row + i + 1]
    at.num_waiting -= 1
    e.active[row + consumer] = False


@njit_inlined
def start(c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int) -> None:
    """Lets a waiting consumer run on the nodes that it holds."""
    at, row = e.of[episode], e.of[episode].row + consumer
    agent, spec = e.agent[row], jobs.of[at.first + consumer]
    nodes = e.held[row, : agent.held]
    dequeue(e, episode, consumer)
    length = run_time(c, spec.topology, agent.left, nodes)
    agent.stage, agent.began, agent.finish = RUNNING, at.time, at.time + length
    if agent.start < 0:
        agent.start = at.time
    e.running[at.row + at.num_running] = consumer
    at.num_running += 1
    place = at.run + at.num_runs
    run = e.runs[place]
    run.consumer, run.begin, run.end = consumer, at.time, at.time + length
    run.held, run.counts = agent.held, 1
    run.work = spec.cores * agent.left / length
    for k in range(agent.held):  # a kernel that allocates nothing copies by hand
        e.run_nodes[place, k] = nodes[k]
    at.num_runs += 1


@njit_inlined
def leave_running(e: Episodes, episode: int, consumer: int) -> None:
    """Takes a consumer out of those that run."""
    at, row = e.of[episode], e.of[episode].row
    k = 0
    while e.running[row + k] != consumer:
        k += 1
    at.num_running -= 1
    e.running[row + k] = e.running[row + at.num_running]


@njit_inlined
def finish(e: Episodes, episode: int, consumer: int) -> None:
    """A consumer is done: its nodes are free again."""
    leave_running(e, episode, consumer)
    let_all_go(e, episode, consumer)
    agent = e.agent[e.of[episode].row + consumer]
    agent.stage, agent.left = DONE, 0.0
    e.of[episode].num_done += 1


@njit_inlined
def interrupt(c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int) -> None:
    """A consumer that runs has lost a node: it waits again, with the nodes that are left to it.

    What had been paid ahead for the rest of the run is given back with its next decision.
    """
    at, row = e.of[episode], e.of[episode].row + consumer
    agent, job = e.agent[row], at.first + consumer
    place = at.run + at.num_runs - 1
    while e.runs[place].consumer != consumer:
        place -= 1
    run = e.runs[place]
    elapsed = at.time - jobs.of[job].arrival
    agent.owed += paid_at_finish(c, jobs, job, agent.finish) - cost(jobs, job, elapsed)
    if c.on_loss == RESTART:
        agent.left, agent.start = jobs.of[job].duration, -1
        run.counts = 0
    else:
        agent.left -= run.work * (at.time - run.begin) / jobs.of[job].cores
    run.end, agent.finish, agent.began, agent.since = at.time, -1, -1, at.time
    leave_running(e, episode, consumer)
    enqueue(e, episode, consumer)
