"""Consumers as a jobset: specifications, the nodes that suit them, and when nodes are away."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.panda.nodes import ANY_CORE, Nodes

NEVER = 2**31 - 1
"""When a node returns that does not."""

MEMORY, CORE_TYPE, TOPOLOGY = "memory", "core_type", "topology"
"""Names of the attributes of a specification; cores are the demand, run time is the duration."""

TOLERANCE = "tolerance"
"""Attribute of consumers that give feedback: from which percentage of its expected time on each is
not content any more; 0 for one that says nothing. See `cluster_env.worlds.panda.objectives`."""

ANYWHERE, ONE_REGION, ONE_RACK = range(3)
"""What a consumer prefers its nodes to be in."""


def no_absences() -> NDArray[np.int32]:
    """Nodes that are there all the time."""
    return np.empty((0, 4), np.int32)


@dataclass(frozen=True, eq=False)
class Consumers(JobSet):
    """A jobset with the supply that its consumers meet, the same under every policy.

    A plain jobset is one too, whose nodes are always there. Of a consumer, ``demand`` is the number
    of cores, ``duration`` the steps that it runs on cores of speed 1, and the attributes
    ``memory`` (gigabytes), ``core_type`` and ``topology`` say the rest; without them, it wants no
    memory, any cores, anywhere.

    Attributes:
        away: int32 ``(num_absences, 4)``: node; clock at which its departure is announced, the same
            as the next where it is sudden; clock at which it leaves; clock at which it returns,
            `NEVER` if it does not. Absences of a node do not overlap.
    """

    away: NDArray[np.int32] = field(default_factory=no_absences)

    def __post_init__(self) -> None:
        super().__post_init__()
        away = self.away.view()  # every policy meets the same absences
        away.flags.writeable = False
        object.__setattr__(self, "away", away)
        if away.ndim != 2 or away.shape[1] != 4 or away.dtype != np.int32:
            raise InputError("absences of nodes need rows of node, announced, leaves and returns")
        node, announced, leaves, returns = away.T
        if ((announced < 0) | (announced > leaves) | (leaves >= returns) | (node < 0)).any():
            raise InputError(
                "a node's departure is announced at 0 or later, no later than it leaves, and it "
                "returns after that"
            )
        # Of one node, each absence must be over before the next one is announced.
        order = np.lexsort((announced, node))
        same = np.diff(node[order]) == 0
        if (same & (announced[order][1:] < returns[order][:-1])).any():
            raise InputError("a node is announced to leave before it has returned")

    @classmethod
    def with_supply(
        cls,
        arrival: ArrayLike,
        duration: ArrayLike,
        cores: ArrayLike,
        *,
        away: ArrayLike = (),
        window: int | None = None,
        job_class: ArrayLike | None = None,
        **attributes: ArrayLike,
    ) -> "Consumers":
        """Builds it from anything that numpy can read as whole numbers."""
        plain = JobSet.of(
            arrival, duration, np.reshape(cores, (-1, 1)), window, job_class, attributes
        )
        return cls(
            *(plain.arrival, plain.duration, plain.demand, plain.window),
            *(plain.job_class, plain.attributes),
            away=np.asarray(away, np.int32).reshape(-1, 4),
        )


def specification(jobset: JobSet, name: str) -> NDArray[np.int64]:
    """An attribute of the specifications, int64 ``(num_jobs,)``; what stands for none if absent."""
    absent = {MEMORY: 0, CORE_TYPE: ANY_CORE, TOPOLOGY: ANYWHERE}[name]
    attributes: Mapping[str, NDArray[Any]] = jobset.attributes
    if name not in attributes:
        return np.full(jobset.num_jobs, absent, np.int64)
    return np.asarray(attributes[name], np.int64)


def absences(jobset: JobSet) -> NDArray[np.int32]:
    """The absences of nodes, int32 ``(num_absences, 4)``; none for a plain jobset."""
    return jobset.away if isinstance(jobset, Consumers) else no_absences()


def nearest_types(
    jobset: JobSet, nodes: Nodes, reach: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The attention filter (3.2.2): which types of nodes each agent looks at, nearest first.

    Types lie in a space of logarithms to the base 2, of cores, of memory for a core, and of speed,
    so that a distance of 1 is a factor of 2. The node that suits a consumer best has all the cores
    and the memory that it asks for, and the speed of the fastest type. Of the types with its core
    type, those pass whose distance from that node is at most `reach` times the root mean square
    distance of all types from their mean, and the nearest one in any case.

    Types are int64 ``(num_jobs, num_types)``, and how many of them pass int64 ``(num_jobs,)``.
    """
    # How far is each type from the node that would be best?
    types = _positions(np.array(nodes.cores), np.array(nodes.memory), np.array(nodes.speed))
    cores = np.maximum(jobset.demand[:, 0], 1)
    fastest = np.full(cores.size, max(nodes.speed))
    ideal = _positions(cores, specification(jobset, MEMORY), fastest)
    distance = np.sqrt(np.square(ideal[:, None] - types).sum(axis=2))
    core_type = specification(jobset, CORE_TYPE)[:, None]
    usable = (core_type < 0) | (np.array(nodes.core_type) == core_type)
    # Types of another core type come last, and never pass.
    order = np.argsort(np.where(usable, distance, np.inf), axis=1, kind="stable")
    spread = np.sqrt(np.square(types - types.mean(axis=0)).sum(axis=1).mean())
    near = distance <= reach * spread if np.isfinite(reach) else np.ones_like(usable)
    passing = np.maximum((usable & near).sum(axis=1), usable.any(axis=1))
    return order.astype(np.int64), passing.astype(np.int64)


def _positions(
    cores: NDArray[Any], memory: NDArray[Any], speed: NDArray[Any]
) -> NDArray[np.float64]:
    """Where nodes lie in the space of types, float64 ``(n, 3)``."""
    size = cores.astype(np.float64)
    return np.log2(np.stack([size, (memory + 1.0) / size, speed], axis=1))


def can_be_satisfied(nodes: Nodes, most: int, cores: int, memory: int, core_type: int) -> bool:
    """Whether some nodes, if all are there, satisfy a specification.

    An agent can hold so many at most. Memory is in gigabytes; `ANY_CORE` is any core type.
    """
    usable = (nodes.column("core_type") == core_type) | (core_type == ANY_CORE)
    sizes = np.stack([nodes.column("cores"), nodes.column("memory")], axis=1).astype(int)
    return bool(usable.any()) and _can_reach(sizes[usable], cores, memory, most)


def _can_reach(sizes: NDArray[np.int64], cores: int, memory: int, most: int) -> bool:
    """Whether some nodes, at most so many, have enough cores and memory; sizes are ``(n, 2)``."""
    in_order = sizes[np.lexsort(sizes.T)]
    # Those with the most cores are usually enough; else each number of nodes is tried.
    if (sizes[np.lexsort(sizes.T[::-1])][-most:].sum(axis=0) >= (cores, memory)).all():
        return True
    best = {0: {0: 0}}  # by number of nodes and their cores, at most those asked for: most memory
    for node_cores, node_memory in in_order.tolist():
        for count in sorted(best, reverse=True):  # so that no node counts twice
            if count == most:
                continue
            further = best.setdefault(count + 1, {})
            for some_cores, some_memory in list(best[count].items()):
                enough = min(some_cores + node_cores, cores)
                further[enough] = max(further.get(enough, -1), some_memory + node_memory)
    return any(by_cores.get(cores, -1) >= memory for by_cores in best.values())
