"""How time passes: somebody decides, consumers finish, nodes leave and return, others arrive."""

import numpy as np

from cluster_env.core.compiled import ZERO, njit_inlined, njit_kernel
from cluster_env.worlds.panda.agents import (
    AgentDecisions,
    carry_out,
    enqueue,
    finish,
    node_leaves,
    reclaim,
    release_waiting,
    reward_of,
)
from cluster_env.worlds.panda.allocation import ENVY_FREE, GOLDEN, SCORED, Rule, decide_for_all
from cluster_env.worlds.panda.observation import observe
from cluster_env.worlds.panda.state import (
    ANNOUNCE,
    COMING,
    DONE,
    LEAVE,
    WAITING,
    Cloud,
    Episode,
    Episodes,
    Jobs,
    Scratch,
    episode_of,
)

RESET, STEP, RULE_STEP, PLAY = range(4)
"""What is done with episodes; a step is a decision of their agents, or of a rule in their place."""


@njit_inlined
def begin(episode: Episode) -> None:
    """Puts an episode back before its first event."""
    progress = episode.progress[0]
    progress.time, progress.rounds, progress.num_arrived, progress.num_waiting = 0, 0, 0, 0
    progress.num_running, progress.num_done, progress.num_events, progress.num_runs = 0, 0, 0, 0
    progress.active, progress.truncated = True, False
    for k in range(episode.nodes.size):
        node = episode.nodes[k]
        node.holder, node.leaves, node.away = -1, -1, 0
    for consumer in range(episode.agents.size):
        agent = episode.agents[consumer]
        agent.stage, agent.start, agent.began, agent.finish = COMING, -1, -1, -1
        agent.held, agent.held_cores, agent.held_memory, agent.since = 0, 0, 0, -1
        agent.left, agent.refund = episode.consumers[consumer].duration, 0.0
    episode.active[:], episode.truncated[:] = False, False


@njit_inlined
def next_event(episode: Episode) -> int:
    """The clock of what happens next, at most `max_time`."""
    progress, patience = episode.progress[0], episode.cloud.patience
    time = episode.cloud.max_time
    # A finish, an event of a node, an arrival, or the end of somebody's patience.
    for k in range(progress.num_running):
        time = min(time, episode.agents[episode.running[k]].finish)
    if progress.num_events < episode.events.shape[0]:
        time = min(time, episode.events[progress.num_events, 0])
    if progress.num_arrived < episode.consumers.size:
        time = min(time, episode.consumers[progress.num_arrived].arrival)
    for k in range(progress.num_waiting if patience else 0):
        agent = episode.agents[episode.waiting[k]]
        if agent.held:
            time = min(time, agent.since + patience)
    return time


@njit_inlined
def advance(episode: Episode, time: int) -> None:
    """Sets the clock and processes what happens then, up to the next decision."""
    progress, cloud = episode.progress[0], episode.cloud
    progress.time = min(time, cloud.max_time)
    # Consumers finish. Another one takes the place of each in the list.
    k = 0
    while k < progress.num_running:
        if episode.agents[episode.running[k]].finish <= progress.time:
            finish(episode, episode.running[k])
        else:
            k += 1
    # Nodes return, are announced to leave, and leave.
    while progress.num_events < episode.events.shape[0]:
        event = episode.events[progress.num_events]
        if event[0] > progress.time:
            break
        if event[1] == LEAVE:
            node_leaves(episode, event[2])
        elif event[1] == ANNOUNCE:
            episode.nodes[event[2]].leaves = event[3]
        else:
            episode.nodes[event[2]].away = 0
        progress.num_events += 1
    reclaim(episode)
    # Consumers arrive.
    while progress.num_arrived < episode.consumers.size:
        if episode.consumers[progress.num_arrived].arrival > progress.time:
            break
        enqueue(episode, progress.num_arrived)
        progress.num_arrived += 1
    # The episode ends when all are done, or is cut.
    if progress.num_done == episode.consumers.size:
        progress.active = False
    elif progress.time >= cloud.max_time:
        progress.active, progress.truncated = False, True
        for consumer in range(episode.agents.size):
            episode.truncated[consumer] = episode.agents[consumer].stage != DONE
            episode.active[consumer] = False


@njit_inlined
def decide(
    episode: Episode,
    decisions: AgentDecisions,
    first: int,
    last: int,
    rule: Rule,
    mode: int,
    scratch: Scratch,
) -> int:
    """Takes a decision of all agents that wait in an episode, or of a rule in their place.

    At some clocks of a hybrid, the static scheduler decides instead of agents and of a scorer. For
    the rows of the decisions see `agents.carry_out`; the rule is not read by `STEP`. Returns the
    clock of the next instant.
    """
    cloud, progress, held_before = episode.cloud, episode.progress[0], decisions.held_before
    now, changed = progress.time, False
    # Agents release by the places of nodes that they held before they caught others.
    for i in range(first, last):
        agent = episode.agents[decisions.rows[i] - episode.first_row]
        held_before[i] = agent.held if agent.stage == WAITING else -1
    # Who decides: the static scheduler, a rule, or each agent for itself.
    is_static = now * GOLDEN % 1.0 < cloud.hybrid and (mode == STEP or rule.choice == SCORED)
    if is_static or mode != STEP:
        release_waiting(episode)
        choice = ENVY_FREE + ZERO if is_static else rule.choice
        decide_for_all(episode, scratch, rule, choice)
    else:
        changed = carry_out(episode, decisions, first, last)
    # As long as agents change something, those that still wait decide again at the same clock.
    again = changed and progress.num_waiting > 0 and progress.rounds + 1 < cloud.rounds
    progress.rounds = progress.rounds + 1 if again else 0
    # When the next decision comes: now, after a step, or when something happens.
    if again:
        time = now
    elif progress.num_waiting > 0 and (mode == STEP or (mode == PLAY and rule.choice == SCORED)):
        time = now + 1  # whoever is held back may decide otherwise then
    else:
        time = next_event(episode)
    # What happens until then is what agents are charged for.
    for i in range(first, last if mode != PLAY else first):
        if held_before[i] >= 0:
            consumer = decisions.rows[i] - episode.first_row
            decisions.rewards[i] = reward_of(episode, consumer, time - now)
    return time


@njit_kernel
def run_episodes(
    cloud: Cloud,
    jobs: Jobs,
    episodes: Episodes,
    mode: int,
    decisions: AgentDecisions,
    rule: Rule,
    scratch: Scratch,
) -> int:
    """Puts episodes back to their first decision, takes one in each, or plays them to the end.

    All of it is one kernel, because the passage of time is most of it and is compiled once so.

    The rows of the decisions say which episodes are meant: to step, all rows that wait in each;
    else any row of each. The rest is read by `STEP` alone, the rule by `RULE_STEP` and `PLAY`.
    Returns how many of the rows are active.
    """
    rows, first, num_active = decisions.rows, ZERO, 0
    while first < rows.size:
        # The rows of an episode stand together.
        number, last = np.int64(episodes.number[rows[first]]), first
        while last < rows.size and episodes.number[rows[last]] == number:
            if mode in (STEP, RULE_STEP):
                decisions.rewards[last] = 0.0
            last += 1
        episode = episode_of(cloud, jobs, episodes, number)
        progress = episode.progress[0]
        if mode in (RESET, PLAY):
            begin(episode)  # at a clock of 0, with nobody there
        # Time passes up to the next decision, but for episodes that are played.
        stops = mode == RESET
        while progress.active and not (stops and progress.num_waiting > 0):
            if progress.num_waiting > 0:
                time = decide(episode, decisions, first, last, rule, mode, scratch)
                stops = mode != PLAY
            else:
                time = next_event(episode)
            advance(episode, time)
        # What rows show is written once, at the end.
        episode.time[:] = progress.time
        if mode != PLAY:
            observe(episode, scratch)
        for i in range(first, last):
            num_active += episodes.active[rows[i]]
        first = last
    return num_active
