"""What agents do: they catch nodes, release them, and start; and what a lost node does to them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.plans import is_satisfied, run_time
from cluster_env.worlds.panda.state import BY_NEED, DONE, RUNNING, WAITING, Episode


class AgentDecisions(NamedTuple):
    """What the agents of some rows do."""

    rows: NDArray[np.int32]  # (n,), rising: all that wait in each of their episodes
    bits: NDArray[np.int8]  # (n, observed + held + 1), see `Panda`
    needs: NDArray[np.float32]  # (n, observed), of each node; not read where arrival decides
    rewards: NDArray[np.float64]  # written, at least n
    held_before: NDArray[np.int64]  # room for n: nodes that each held, or -1 if it does not wait


@njit_inlined
def catch(episode: Episode, consumer: int, node: int) -> None:
    """Gives a free node to a consumer that waits and has room for it."""
    agent = episode.agents[consumer]
    # Patience counts from the first node.
    if agent.held == 0:
        agent.since = episode.progress[0].time
    episode.held[consumer, agent.held] = node
    agent.held += 1
    agent.held_cores += episode.cloud.cores[node]
    agent.held_memory += episode.cloud.memory[node]
    episode.nodes[node].holder = consumer


@njit_inlined
def release(episode: Episode, consumer: int, node: int) -> None:
    """Takes a node from its holder."""
    # Where does it stand among the held ones?
    agent, held = episode.agents[consumer], episode.held[consumer]
    place = 0
    while held[place] != node:
        place += 1
    # The order of catches is kept: agents see it.
    for k in range(place, agent.held - 1):
        held[k] = held[k + 1]
    agent.held -= 1
    agent.held_cores -= episode.cloud.cores[node]
    agent.held_memory -= episode.cloud.memory[node]
    episode.nodes[node].holder = -1


@njit_inlined
def release_all(episode: Episode, consumer: int) -> None:
    """Takes all nodes from their holder."""
    agent = episode.agents[consumer]
    for k in range(agent.held):
        episode.nodes[episode.held[consumer, k]].holder = -1
    agent.held, agent.held_cores, agent.held_memory = 0, 0, 0


@njit_inlined
def release_waiting(episode: Episode) -> None:
    """Takes what consumers that wait hold, so that all free nodes are there for all."""
    for k in range(episode.progress[0].num_waiting):
        release_all(episode, episode.waiting[k])


@njit_inlined
def enqueue(episode: Episode, consumer: int) -> None:
    """Lets a consumer wait; those that wait stand in the order of their arrival."""
    # Mostly it is the last one, but an interrupted one stands before who came after it.
    progress, waiting = episode.progress[0], episode.waiting
    place = progress.num_waiting
    while place > 0 and waiting[place - 1] > consumer:
        waiting[place] = waiting[place - 1]
        place -= 1
    waiting[place] = consumer
    progress.num_waiting += 1
    episode.agents[consumer].stage = WAITING
    episode.active[consumer] = True


@njit_inlined
def start_if_satisfied(episode: Episode, consumer: int) -> bool:
    """Lets a waiting consumer run on the nodes that it holds, if these satisfy it; whether so."""
    if not is_satisfied(episode, consumer):
        return False
    progress, agent = episode.progress[0], episode.agents[consumer]
    spec = episode.consumers[consumer]
    nodes = episode.held[consumer, : agent.held]
    # It leaves those that wait, which stay in order.
    waiting, place = episode.waiting, 0
    while waiting[place] != consumer:
        place += 1
    for k in range(place, progress.num_waiting - 1):
        waiting[k] = waiting[k + 1]
    progress.num_waiting -= 1
    episode.active[consumer] = False
    # It joins those that run.
    steps = run_time(episode.cloud, spec.topology, agent.left, nodes)
    agent.stage, agent.began, agent.finish = RUNNING, progress.time, progress.time + steps
    if agent.start < 0:
        agent.start = progress.time
    episode.running[progress.num_running] = consumer
    progress.num_running += 1
    # The run is noted for the schedule.
    run = episode.runs[progress.num_runs]
    run.consumer, run.begin, run.end = consumer, progress.time, progress.time + steps
    run.held, run.counts = agent.held, 1
    run.work = spec.cores * agent.left / steps
    for k in range(agent.held):  # a kernel that allocates nothing copies by hand
        episode.run_nodes[progress.num_runs, k] = nodes[k]
    progress.num_runs += 1
    return True


@njit_inlined
def allocate(episode: Episode, consumer: int, nodes: NDArray[np.int64]) -> None:
    """Gives free nodes to a consumer that holds none, and lets it start if they satisfy it."""
    for node in nodes:
        catch(episode, consumer, node)
    if not start_if_satisfied(episode, consumer):
        release_all(episode, consumer)  # they stand apart, which the consumer does not allow


@njit_inlined
def stop_running(episode: Episode, consumer: int) -> None:
    """Takes a consumer out of those that run; the last one of them takes its place."""
    progress, running = episode.progress[0], episode.running
    place = 0
    while running[place] != consumer:
        place += 1
    progress.num_running -= 1
    running[place] = running[progress.num_running]


@njit_inlined
def finish(episode: Episode, consumer: int) -> None:
    """A consumer is done: its nodes are free again."""
    stop_running(episode, consumer)
    release_all(episode, consumer)
    episode.agents[consumer].stage, episode.agents[consumer].left = DONE, 0.0
    episode.progress[0].num_done += 1


@njit_inlined
def node_leaves(episode: Episode, node: int) -> None:
    """A node leaves; whoever holds it loses it."""
    here = episode.nodes[node]
    if here.holder >= 0:
        consumer = here.holder
        release(episode, consumer, node)
        if episode.agents[consumer].stage == RUNNING:
            interrupt(episode, consumer)
    here.away, here.leaves = 1, -1


@njit_inlined
def interrupt(episode: Episode, consumer: int) -> None:
    """A consumer that runs has lost a node: it waits again, with the nodes that are left to it."""
    progress, agent = episode.progress[0], episode.agents[consumer]
    now, spec = progress.time, episode.consumers[consumer]
    last = progress.num_runs - 1
    while episode.runs[last].consumer != consumer:
        last -= 1
    run = episode.runs[last]
    # The whole run was paid ahead: its next decision is given back the rest.
    agent.refund += paid_at_finish(episode, consumer) - cost(episode, consumer, now - spec.arrival)
    # The run ends here, and all of it is to be done anew.
    agent.start, run.counts = -1, 0
    run.end, agent.finish, agent.began, agent.since = now, -1, -1, now
    stop_running(episode, consumer)
    enqueue(episode, consumer)


@njit_inlined
def reclaim(episode: Episode) -> None:
    """Takes the nodes of agents that have held some for too long without a start."""
    progress, patience = episode.progress[0], episode.cloud.patience
    for k in range(progress.num_waiting if patience else 0):
        agent = episode.agents[episode.waiting[k]]
        if agent.held and progress.time - agent.since >= patience:
            release_all(episode, episode.waiting[k])


@njit_inlined
def can_catch(episode: Episode, consumer: int, node: int) -> bool:
    """Whether a node is there and free and of the consumer's core type."""
    here, core_type = episode.nodes[node], episode.consumers[consumer].core_type
    if here.away or here.holder >= 0:
        return False
    return core_type < 0 or episode.cloud.core_type[node] == core_type


@njit_inlined
def resolve_catches(episode: Episode, decisions: AgentDecisions, first: int, last: int) -> None:
    """Gives each node that is caught to one of those that catch it, see `carry_out`."""
    rows, bits, cloud = decisions.rows, decisions.bits, episode.cloud
    for i in range(first, last):
        # Each has its turn by arrival, and gets what it catches, unless another needs it more.
        consumer = rows[i] - episode.first_row
        if episode.agents[consumer].stage != WAITING:
            continue
        for place in range(cloud.observed):
            node = episode.shown[consumer, place]
            if not bits[i, place] or node < 0 or episode.agents[consumer].held >= cloud.held:
                continue
            if not can_catch(episode, consumer, node):
                continue
            winner = consumer
            if cloud.collision == BY_NEED:
                winner = neediest(episode, decisions, i, last, place)
            if winner == consumer or can_catch(episode, winner, node):
                catch(episode, winner, node)


@njit_inlined
def neediest(episode: Episode, decisions: AgentDecisions, i: int, last: int, place: int) -> int:
    """Who of rows ``i`` to ``last`` needs most the node that row ``i`` sees in a place.

    Rows before ``i`` have had their turn: what they catch and still is free, they had no room for.
    Of equal needs the first arrival goes first.
    """
    rows, bits, needs = decisions.rows, decisions.bits, decisions.needs
    winner, most = rows[i] - episode.first_row, needs[i, place]
    node = episode.shown[winner, place]
    # Rivals may see the node in another place.
    for j in range(i + 1, last):
        rival = rows[j] - episode.first_row
        agent = episode.agents[rival]
        if agent.stage != WAITING or agent.held >= episode.cloud.held:
            continue
        for k in range(episode.cloud.observed):
            if episode.shown[rival, k] == node and bits[j, k] and needs[j, k] > most:
                winner, most = rival, needs[j, k]
    return winner


@njit_inlined
def carry_out(episode: Episode, decisions: AgentDecisions, first: int, last: int) -> bool:
    """Lets agents act: all catch, then all release, then all start that can and do not wait.

    The episode's agents are rows ``first`` to ``last`` - 1 of the decisions, by arrival. Returns
    whether anything has changed.
    """
    bits, cloud, changed = decisions.bits, episode.cloud, False
    resolve_catches(episode, decisions, first, last)
    for i in range(first, last):
        consumer, held = decisions.rows[i] - episode.first_row, decisions.held_before[i]
        if held < 0:
            continue  # it does not wait, and cannot act
        changed |= episode.agents[consumer].held > held
        # From behind, so that places of nodes stay what the agent has seen.
        for place in range(held - 1, -1, -1):
            if bits[i, cloud.observed + place]:
                release(episode, consumer, episode.held[consumer, place])
        changed |= episode.agents[consumer].held != held
        if not bits[i, cloud.observed + cloud.held]:
            changed |= start_if_satisfied(episode, consumer)
    return changed


@njit_inlined
def cost(episode: Episode, consumer: int, elapsed: int) -> float:
    """What a consumer has cost after so many steps in the system."""
    total = episode.consumers[consumer].rate * elapsed
    for k in range(episode.late_rate.shape[1]):
        late = max(elapsed - episode.late_after[consumer, k], 0)
        total += episode.late_rate[consumer, k] * late
    return total


@njit_inlined
def paid_at_finish(episode: Episode, consumer: int) -> float:
    """Cost until the planned finish, less what that gains; an episode is cut at `max_time`."""
    # Who would finish later is cut, pays until then and gains nothing.
    spec, end = episode.consumers[consumer], episode.agents[consumer].finish
    until = min(end, episode.cloud.max_time)
    gain = spec.finish_gain if end <= episode.cloud.max_time else 0.0
    return cost(episode, consumer, until - spec.arrival) - gain


@njit_inlined
def reward_of(episode: Episode, consumer: int, steps: int) -> float:
    """The reward of an agent's decision, after which the next one comes in so many steps.

    Minus what its consumer costs until then, or for the whole run ahead if it has started; and what
    was paid too much for a run that has broken off.
    """
    agent, now = episode.agents[consumer], episode.progress[0].time
    elapsed = now - episode.consumers[consumer].arrival
    if agent.stage == RUNNING:
        paid = paid_at_finish(episode, consumer)
    else:
        paid = cost(episode, consumer, elapsed + steps)
    reward = agent.refund + cost(episode, consumer, elapsed) - paid
    agent.refund = 0.0
    return reward
