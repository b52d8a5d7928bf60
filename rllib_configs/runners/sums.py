"""Sums over the units of a round, in one order, whoever makes them.

Units are the leaves of a binary tree, in order of their places. A node is the sum of its two
children, or its only child, so a sum has the same bits whether one process adds it all up or many
add parts of it, and whichever of them come first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Node = tuple[int, int]
"""Level above the leaves, and place from the left."""


@dataclass(frozen=True, eq=False)
class Part:
    """What some units have come to.

    Attributes:
        gradient: float32 ``(num_learned,)``, sum over the units; None where none was asked for.
        sums: other sums over the units, by name.
        per_unit: what is not added up, by index of the unit.
    """

    gradient: NDArray[np.float32] | None = None
    sums: Mapping[str, float] = field(default_factory=dict)
    per_unit: Mapping[int, Any] = field(default_factory=dict)

    def __add__(self, other: "Part") -> "Part":
        """Both together; a name that one lacks counts as 0 there."""
        gradient = self.gradient
        if gradient is None:
            gradient = other.gradient
        elif other.gradient is not None:
            gradient = gradient + other.gradient
        sums = dict(self.sums)
        for name, value in other.sums.items():
            sums[name] = sums[name] + value if name in sums else value
        return Part(gradient, sums, {**self.per_unit, **other.per_unit})


def merged(
    parts: Mapping[Node, Part], count: int, known: dict[Node, Part] | None = None
) -> dict[Node, Part]:
    """Adds up what can be added up.

    Args:
        parts: disjoint nodes of the tree.
        count: number of its leaves.
        known: what was merged before; it is changed, and the answer.

    Returns:
        Fewest nodes that stand for the same leaves; with all leaves, the root alone.
    """
    found = {} if known is None else known
    for (level, place), given in parts.items():
        part, width = given, -(-count // (1 << level))
        while width > 1:
            if place % 2 or place + 1 < width:
                beside = found.pop((level, place ^ 1), None)
                if beside is None:
                    break
                part = part + beside
            level, place, width = level + 1, place // 2, (width + 1) // 2
        found[level, place] = part
    return found


def total(parts: Mapping[Node, Part], count: int) -> Part:
    """The sum over all leaves.

    Raises:
        ValueError: if some are missing.
    """
    found = merged(parts, count)
    root = ((count - 1).bit_length(), 0)
    if found.keys() != {root}:
        raise ValueError(f"a sum over {count} units was asked for, but some of them are missing")
    return found[root]
