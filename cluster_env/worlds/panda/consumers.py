"""Consumers as a jobset: specifications, and when nodes are away meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.worlds.panda.nodes import ANY_CORE

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
        away = self.away
        if away.ndim != 2 or away.shape[1] != 4 or away.dtype != np.int32:
            raise InputError("absences of nodes need rows of node, announced, leaves and returns")
        node, announced, leaves, returns = away.T
        if ((announced < 0) | (announced > leaves) | (leaves >= returns) | (node < 0)).any():
            raise InputError(
                "a node's departure is announced at 0 or later, no later than it leaves, and it "
                "returns after that"
            )
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
