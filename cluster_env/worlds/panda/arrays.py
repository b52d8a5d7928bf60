"""What the compiled functions of this world work on.

A *row* is an agent: one consumer of one episode. The rows of an episode stand together, in the
order of the consumers, so that a row is the first row of its episode plus the consumer's number.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

COMING, WAITING, RUNNING, DONE = range(4)
"""What has become of a consumer."""

RETURN, ANNOUNCE, LEAVE = range(3)
"""What happens to a node; at one instant in this order."""

BY_ARRIVAL, BY_NEED = range(2)
"""Who gets a node that several agents catch."""

RESTART, RESUME = range(2)
"""What a consumer on a lost node has left to do."""

SLOWEST, MEAN = range(2)
"""The speed of several nodes."""

HEADER = (
    *("waited", "left", "cores", "memory", "core_type", "topology"),
    *("held_cores", "held_memory", "held_nodes", "free_nodes", "free_cores"),
    *("waiting", "waiting_cores", "running", "ahead", "satisfied", "free_work"),
)
"""What a state begins with, each an int32; then the plans, the observed nodes, and the held ones.

``left`` is in steps at speed 1, ``core_type`` is 0 for any, ``waiting`` counts agents that wait,
``ahead`` those of them that arrived before, and ``satisfied`` is 1 if the held nodes satisfy the
specification; ``free_work`` is what all free nodes can do in a step, in core steps at speed 1.
"""

_SPECIFICATION = np.array(
    [HEADER.index(name) for name in ("left", "cores", "memory", "core_type", "topology")]
)


def specification_columns(states: NDArray[np.int32]) -> NDArray[np.int32]:
    """The columns of some states that say what a consumer asks for, int32 ``(n, 5)``."""
    return states.take(_SPECIFICATION, axis=1)


PLANS = ("tight", "fast", "lean")
"""Sets of nodes that the supervisor works out for each agent among those that it sees, with which
what it holds would satisfy its specification: those with the fewest cores, those with the shortest
run, and those that could do the least in that time. See `planning.propose`."""

PLAN_SEEN = ("nodes", "cores", "work", "steps", "wanted")
"""What a state has of each plan, with the nodes that are held; all 0 where there is none. ``work``
is what they can do in a step; ``wanted`` counts, in hundredths, the consumers that wait for which a
node is of the nearest type, a mean over its nodes."""

NODES_AT = len(HEADER) + len(PLANS) * len(PLAN_SEEN)
"""Where the nodes begin in a state."""

NODE_SEEN = ("present", "cores", "memory", "speed", "same_rack", "same_region", "notice", "plans")
"""What a state has of each node; 0 where none is.

``speed`` is in hundredths; ``same_rack`` and ``same_region`` compare with the first node that is
held; ``notice`` is 1 + the steps until it leaves, 0 if no departure is announced; ``plans`` is the
sum of 2**p over the plans p that it belongs to.
"""


class Cloud(NamedTuple):
    """The nodes and the rules; see `cluster_env.worlds.panda.world.Panda`."""

    type: NDArray[np.int32]  # (num_nodes,), as all that follow
    rack: NDArray[np.int32]
    region: NDArray[np.int32]
    cores: NDArray[np.int64]
    memory: NDArray[np.int64]
    core_type: NDArray[np.int64]
    speed: NDArray[np.float64]
    first: NDArray[np.int64]  # (num_types + 1,), first node of each type, and the number of nodes
    across_racks: float
    across_regions: float
    collision: int
    on_loss: int
    pace: int
    observed: int
    held: int
    patience: int
    rounds: int
    hybrid: float
    strict: bool
    max_time: int


CONSUMER = np.dtype(
    [(name, np.int64) for name in ("arrival", "duration", "cores", "memory", "core_type")]
    + [(name, np.int64) for name in ("topology", "num_types")]
    + [(name, np.float64) for name in ("rate", "finish_gain")],
    align=True,
)
"""Of a specification, with what its objective costs; ``num_types`` types of nodes pass its filter.
"""

AGENT = np.dtype(
    [
        # `WAITING` and so on; clocks, -1 before: of the first start that counts, of the start of
        # the present run, of its planned finish
        *((name, np.int64) for name in ("stage", "start", "began", "finish")),
        *((name, np.int64) for name in ("held", "held_cores", "held_memory", "since")),
        ("left", np.float64),  # work in steps at speed 1
        ("owed", np.float64),  # rewards that its next decision is given
    ],
    align=True,
)
"""Of a consumer in an episode; ``since`` is the clock since which it has held nodes."""

NODE = np.dtype([(name, np.int64) for name in ("holder", "leaves", "away")], align=True)
"""Of a node in an episode: the number of the consumer that holds it, or -1; the announced clock of
its departure, or -1; whether it is away."""

RUN = np.dtype(
    [(name, np.int64) for name in ("consumer", "begin", "end", "held", "counts")]
    + [("work", np.float64)],  # core steps at speed 1 in each step
    align=True,
)
"""One stretch that a consumer ran on the same nodes; one that is lost does not count as work."""

EPISODE = np.dtype(
    [
        ("jobset", np.int64),
        # the first of its consumers among all, how many there are, its first row; events of nodes,
        # of which `event` is the next; its first run, and how many there are
        *((name, np.int64) for name in ("first", "count", "row", "event", "last_event", "run")),
        *((name, np.int64) for name in ("first_event", "num_runs", "window")),
        *(
            (name, np.int64)
            for name in ("time", "round", "coming", "num_waiting", "num_running", "num_done")
        ),
        *((name, np.bool_) for name in ("active", "truncated")),
    ],
    align=True,
)
"""Of an episode; ``coming`` counts the consumers that have arrived, and ``round`` the decisions
that were taken at the present clock."""


class Jobs(NamedTuple):
    """The consumers of all jobsets, one after the other, and the events of their nodes."""

    of: NDArray[np.void]  # (num_jobs,) of `CONSUMER`
    types: NDArray[np.int64]  # (num_jobs, num_types), those that pass the filter, nearest first
    late_rate: NDArray[np.float64]  # (num_late, num_jobs)
    late_after: NDArray[np.int64]  # (num_late, num_jobs)
    events: NDArray[np.int64]  # (num_events, 4): clock, what happens, node, clock of its departure


class Episodes(NamedTuple):
    """Episodes side by side, and their rows."""

    of: NDArray[np.void]  # (num_episodes,) of `EPISODE`
    agent: NDArray[np.void]  # (num_rows,) of `AGENT`
    node: NDArray[np.void]  # (num_episodes, num_nodes) of `NODE`
    held: NDArray[np.int64]  # (num_rows, most held), nodes
    shown: NDArray[np.int64]  # (num_rows, observed), nodes; -1 where none is
    waiting: NDArray[np.int64]  # (num_rows,): in each episode's rows, its waiting consumers
    running: NDArray[np.int64]  # (num_rows,): in the same way, those that run
    runs: NDArray[np.void]  # of `RUN`, room for all that there can be
    run_nodes: NDArray[np.int64]  # (room, most held)
    episode: NDArray[np.int32]  # (num_rows,)
    active: NDArray[np.bool_]  # (num_rows,)
    truncated: NDArray[np.bool_]  # (num_rows,)
    time: NDArray[np.int64]  # (num_rows,)
    states: NDArray[np.int32]  # (num_rows, state_size)
