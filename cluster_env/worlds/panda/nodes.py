"""The nodes of a cloud: how many of each type, and where they stand."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_option_types
from cluster_env.core.errors import InputError

MOST_NODES = 4096
ANY_CORE = -1
"""A consumer that takes cores of every type."""


@dataclass(frozen=True)
class Nodes:
    """All nodes that can ever be there; the n-th number of each field belongs to the n-th type.

    Nodes are numbered type by type. Those of a type are dealt out to the racks in turn, and racks
    of neighbouring numbers share a region.

    Attributes:
        count: number of nodes of each type.
        cores: cores of a node of each type.
        speed: work that a core of each type does in a step, in units of the speed for which
            durations are given. Cores x speed must be a whole number.
        memory: gigabytes of memory of a node of each type.
        core_type: core type of each type of nodes, numbered from 0; a consumer may require one.
        racks: number of racks, over which the nodes are spread.
        regions: number of regions, at most the number of racks.
    """

    count: tuple[int, ...] = (6, 6, 4)
    cores: tuple[int, ...] = (16, 8, 4)
    speed: tuple[float, ...] = (1.0, 1.5, 2.0)
    memory: tuple[int, ...] = (64, 32, 32)
    core_type: tuple[int, ...] = (0, 0, 1)
    racks: int = 4
    regions: int = 2

    def __post_init__(self) -> None:
        require_option_types(self)
        columns = ("count", "cores", "speed", "memory", "core_type")
        sizes = {len(getattr(self, name)) for name in columns}
        if len(sizes) != 1 or 0 in sizes:
            raise InputError(
                f"nodes need one number for each type in {', '.join(columns)}, but the lengths "
                f"{', '.join(str(len(getattr(self, name))) for name in columns)} were given"
            )
        for name, least, most in (
            *(("count", 1, MOST_NODES), ("cores", 1, 4096), ("speed", 0.01, 100)),
            *(("memory", 0, 2**20), ("core_type", 0, 255)),
        ):
            for value in getattr(self, name):
                if not least <= value <= most:
                    raise InputError(f"{name} must be {least} to {most:,}, but {value} was given")
        if self.num_nodes > MOST_NODES:
            raise InputError(
                f"there can be at most {MOST_NODES:,} nodes, but {self.num_nodes:,} were given"
            )
        if not 1 <= self.regions <= self.racks <= MOST_NODES:
            raise InputError(
                f"regions and racks must be 1 or more, and no more regions than racks, but "
                f"{self.regions} regions and {self.racks} racks were given"
            )
        # States and schedules count the work of a node in whole numbers.
        for cores, speed in zip(self.cores, self.speed, strict=True):
            if abs(cores * speed - round(cores * speed)) > 1e-9:
                raise InputError(
                    f"cores x speed must be a whole number, the work that a node does in a step, "
                    f"but {cores} x {speed:g} is {cores * speed:g}"
                )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return sum(self.count)

    @property
    def num_types(self) -> int:
        """Number of types."""
        return len(self.count)

    @cached_property
    def type(self) -> NDArray[np.int32]:
        """Type of each node, int32 ``(num_nodes,)``, never decreasing."""
        return np.repeat(np.arange(self.num_types, dtype=np.int32), self.count)

    @cached_property
    def rack(self) -> NDArray[np.int32]:
        """Rack of each node, int32 ``(num_nodes,)``."""
        return np.arange(self.num_nodes, dtype=np.int32) % np.int32(self.racks)

    @cached_property
    def region(self) -> NDArray[np.int32]:
        """Region of each node, int32 ``(num_nodes,)``."""
        return (self.rack * self.regions // self.racks).astype(np.int32)

    @cached_property
    def work(self) -> NDArray[np.int32]:
        """What each node does in a step, in core steps at speed 1, int32 ``(num_nodes,)``."""
        of_type = np.rint(np.multiply(self.cores, self.speed)).astype(np.int32)
        return of_type[self.type]

    @property
    def capacity(self) -> int:
        """What all nodes do in a step, in core steps at speed 1."""
        return int(self.work.sum())

    def column(self, name: str) -> NDArray[np.float64]:
        """A column of the types, for each node, float64 ``(num_nodes,)``."""
        return np.asarray(getattr(self, name), np.float64)[self.type]
