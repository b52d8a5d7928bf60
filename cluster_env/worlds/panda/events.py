"""How time passes: consumers finish, nodes leave and return, consumers arrive."""

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import (
    ANNOUNCE,
    COMING,
    DONE,
    LEAVE,
    RUNNING,
    Cloud,
    Episodes,
    Jobs,
)
from cluster_env.worlds.panda.holding import enqueue, finish, interrupt, let_all_go, let_go


@njit_inlined
def lose(c: Cloud, jobs: Jobs, e: Episodes, episode: int, node: int) -> None:
    """A node leaves; whoever holds it loses it."""
    at = e.node[episode, node]
    if at.holder >= 0:
        consumer = at.holder
        let_go(c, e, episode, consumer, node)
        if e.agent[e.of[episode].row + consumer].stage == RUNNING:
            interrupt(c, jobs, e, episode, consumer)
    at.away, at.leaves = 1, -1


@njit_inlined
def take_back(c: Cloud, e: Episodes, episode: int) -> None:
    """Takes the nodes of agents that have held some for too long without a start."""
    at = e.of[episode]
    for k in range(at.num_waiting):
        consumer = e.waiting[at.row + k]
        agent = e.agent[at.row + consumer]
        if agent.held and at.time - agent.since >= c.patience:
            let_all_go(e, episode, consumer)


@njit_inlined
def happen(c: Cloud, jobs: Jobs, e: Episodes, episode: int) -> None:
    """All that happens at the present clock, before decisions."""
    at = e.of[episode]
    k = 0
    while k < at.num_running:
        consumer = e.running[at.row + k]
        if e.agent[at.row + consumer].finish <= at.time:
            finish(e, episode, consumer)  # another one takes its place in the list
        else:
            k += 1
    while at.event < at.last_event and jobs.events[at.event, 0] <= at.time:
        what, node = jobs.events[at.event, 1], jobs.events[at.event, 2]
        if what == LEAVE:
            lose(c, jobs, e, episode, node)
        elif what == ANNOUNCE:
            e.node[episode, node].leaves = jobs.events[at.event, 3]
        else:
            e.node[episode, node].away = 0
        at.event += 1
    if c.patience:
        take_back(c, e, episode)
    while at.coming < at.count and jobs.of[at.first + at.coming].arrival <= at.time:
        at.coming += 1
        enqueue(e, episode, at.coming - 1)


@njit_inlined
def next_clock(c: Cloud, jobs: Jobs, e: Episodes, episode: int) -> int:
    """When something happens next, at most `max_time`."""
    at = e.of[episode]
    found = c.max_time
    for k in range(at.num_running):
        found = min(found, e.agent[at.row + e.running[at.row + k]].finish)
    if at.event < at.last_event:
        found = min(found, jobs.events[at.event, 0])
    if at.coming < at.count:
        found = min(found, jobs.of[at.first + at.coming].arrival)
    if c.patience:
        for k in range(at.num_waiting):
            agent = e.agent[at.row + e.waiting[at.row + k]]
            if agent.held:
                found = min(found, agent.since + c.patience)
    return found


@njit_inlined
def move_to(c: Cloud, jobs: Jobs, e: Episodes, episode: int, clock: int) -> None:
    """Sets the clock, lets happen what happens then, and ends the episode where it does."""
    at = e.of[episode]
    at.time = min(clock, c.max_time)
    happen(c, jobs, e, episode)
    if at.num_done == at.count:
        at.active = False
    elif at.time >= c.max_time:
        at.active, at.truncated = False, True
        for row in range(at.row, at.row + at.count):
            e.truncated[row] = e.agent[row].stage != DONE
            e.active[row] = False


@njit_inlined
def tell_time(e: Episodes, episode: int) -> None:
    """Writes the clock of an episode to its rows."""
    at = e.of[episode]
    for row in range(at.row, at.row + at.count):
        e.time[row] = at.time


@njit_inlined
def begin(c: Cloud, jobs: Jobs, e: Episodes, episode: int) -> None:
    """Puts an episode back before its first instant."""
    at = e.of[episode]
    at.time, at.round, at.coming, at.num_waiting, at.num_running, at.num_done = 0, 0, 0, 0, 0, 0
    at.num_runs, at.event, at.active, at.truncated = 0, at.first_event, True, False
    for node in range(c.type.size):
        here = e.node[episode, node]
        here.holder, here.leaves, here.away = -1, -1, 0
    for consumer in range(at.count):
        row = at.row + consumer
        agent = e.agent[row]
        agent.stage, agent.start, agent.began, agent.finish = COMING, -1, -1, -1
        agent.held, agent.held_cores, agent.held_memory, agent.since = 0, 0, 0, -1
        agent.left, agent.owed = jobs.of[at.first + consumer].duration, 0.0
        e.active[row] = e.truncated[row] = False
