"""The attention filter: which types of nodes an agent looks at, and in which order (3.2.2)."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.worlds.panda.consumers import CORE_TYPE, MEMORY, specification
from cluster_env.worlds.panda.nodes import Nodes


def type_positions(nodes: Nodes) -> NDArray[np.float64]:
    """Where each type lies: logarithms of cores, of memory for a core, and of speed.

    float64 ``(num_types, 3)``, to the base 2, so that a distance of 1 is a factor of 2.
    """
    cores, memory = np.array(nodes.cores, float), np.array(nodes.memory, float)
    return np.log2(np.stack([cores, (memory + 1) / cores, np.array(nodes.speed)], axis=1))


def wanted_positions(jobset: JobSet, nodes: Nodes) -> NDArray[np.float64]:
    """Where the node would lie that suits each consumer best, float64 ``(num_jobs, 3)``.

    It has all the cores and the memory that are asked for, and the speed of the fastest type.
    """
    cores = np.maximum(jobset.demand[:, 0].astype(float), 1)
    memory = specification(jobset, MEMORY).astype(float)
    fastest = np.full(cores.size, max(nodes.speed))
    return np.log2(np.stack([cores, (memory + 1) / cores, fastest], axis=1))


def nearest_types(
    jobset: JobSet, nodes: Nodes, reach: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The types that pass each consumer's filter, nearest first.

    Types of another core type than the consumer's never pass. Of the others, those do whose
    distance is at most `reach` times the root mean square distance of all types from their mean,
    and the nearest one in any case.

    Args:
        jobset: the consumers.
        nodes: the cloud's.
        reach: of the filter, above 0; infinity lets all pass.

    Returns:
        Types, int64 ``(num_jobs, num_types)``, and how many of them pass, int64 ``(num_jobs,)``.
    """
    types = type_positions(nodes)
    apart = wanted_positions(jobset, nodes)[:, None] - types
    distance = np.sqrt(np.square(apart).sum(axis=2))
    wanted = specification(jobset, CORE_TYPE)[:, None]
    usable = (wanted < 0) | (np.array(nodes.core_type) == wanted)
    order = np.argsort(np.where(usable, distance, np.inf), axis=1, kind="stable")
    spread = np.sqrt(np.square(types - types.mean(axis=0)).sum(axis=1).mean())
    near = distance <= reach * spread if np.isfinite(reach) else np.ones_like(usable)
    passing = np.maximum((usable & near).sum(axis=1), usable.any(axis=1))
    return order.astype(np.int64), passing.astype(np.int64)
