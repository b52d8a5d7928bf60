"""From jobsets to the arrays that compiled functions work on."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import Objective
from cluster_env.worlds.panda.arrays import (
    AGENT,
    ANNOUNCE,
    CONSUMER,
    EPISODE,
    LEAVE,
    NODE,
    RETURN,
    RUN,
    Cloud,
    Episodes,
    Jobs,
)
from cluster_env.worlds.panda.consumers import (
    CORE_TYPE,
    MEMORY,
    NEVER,
    TOPOLOGY,
    absences,
    specification,
)
from cluster_env.worlds.panda.filters import nearest_types
from cluster_env.worlds.panda.nodes import Nodes


def joined_jobs(
    jobsets: Sequence[JobSet], objective: Objective, nodes: Nodes, reach: float
) -> Jobs:
    """The consumers of all jobsets, with what the objective costs them."""
    total = sum(jobset.num_jobs for jobset in jobsets)
    of = np.zeros(total, CONSUMER)
    late = np.zeros((len(objective.late_costs), total))
    after = np.zeros((len(objective.late_costs), total), np.int64)
    types = np.zeros((total, nodes.num_types), np.int64)
    first = 0
    for jobset in jobsets:
        rows = slice(first, first + jobset.num_jobs)
        of["arrival"][rows], of["duration"][rows] = jobset.arrival, jobset.duration
        of["cores"][rows] = jobset.demand[:, 0]
        for name in (MEMORY, CORE_TYPE, TOPOLOGY):
            of[name][rows] = specification(jobset, name)
        types[rows], of["num_types"][rows] = nearest_types(jobset, nodes, reach)
        of["rate"][rows] = objective.job_cost(jobset)
        if objective.finish_gain is not None:
            of["finish_gain"][rows] = objective.finish_gain(jobset)
        for k, cost in enumerate(objective.late_costs):
            late[k, rows], after[k, rows] = cost.cost(jobset), cost.after(jobset)
        first = rows.stop
    events = [events_of(jobset) for jobset in jobsets]
    return Jobs(of, types, late, after, np.concatenate(events))


def events_of(jobset: JobSet) -> NDArray[np.int64]:
    """What happens to the nodes, by clock, int64 ``(num_events, 4)``; see `Jobs.events`."""
    rows = []
    for node, announced, leaves, returns in absences(jobset).tolist():
        if announced < leaves:
            rows.append((announced, ANNOUNCE, node, leaves))
        rows.append((leaves, LEAVE, node, leaves))
        if returns < NEVER:
            rows.append((returns, RETURN, node, returns))
    return np.array(sorted(rows), np.int64).reshape(-1, 4)


def new_episodes(
    jobset: NDArray[np.int32], jobsets: Sequence[JobSet], cloud: Cloud, state_size: int
) -> Episodes:
    """Room for episodes, not yet begun.

    Args:
        jobset: int32 ``(num_episodes,)``, what each of them runs.
        jobsets: all.
        cloud: the nodes and the rules.
        state_size: of a state.
    """
    counts = np.array([one.num_jobs for one in jobsets])
    num_events = np.array([events_of(one).shape[0] for one in jobsets])
    # Each run ends with its consumer or with a node that leaves.
    num_runs = counts + np.array([absences(one).shape[0] for one in jobsets])
    count, of = counts[jobset], np.zeros(jobset.size, EPISODE)
    of["jobset"], of["count"] = jobset, count
    of["first"] = (np.cumsum(counts) - counts)[jobset]
    of["row"] = np.cumsum(count) - count
    of["first_event"] = (np.cumsum(num_events) - num_events)[jobset]
    of["last_event"] = of["first_event"] + num_events[jobset]
    room = num_runs[jobset]
    of["run"] = np.cumsum(room) - room
    of["window"] = np.array([one.window for one in jobsets])[jobset]
    rows = int(count.sum())
    return Episodes(
        of=of,
        agent=np.zeros(rows, AGENT),
        node=np.zeros((jobset.size, cloud.type.size), NODE),
        held=np.zeros((rows, cloud.held), np.int64),
        shown=np.full((rows, cloud.observed), -1, np.int64),
        waiting=np.zeros(rows, np.int64),
        running=np.zeros(rows, np.int64),
        runs=np.zeros(int(room.sum()), RUN),
        run_nodes=np.zeros((int(room.sum()), cloud.held), np.int64),
        episode=np.repeat(np.arange(jobset.size, dtype=np.int32), count),
        active=np.zeros(rows, np.bool_),
        truncated=np.zeros(rows, np.bool_),
        time=np.zeros(rows, np.int64),
        states=np.zeros((rows, state_size), np.int32),
    )
