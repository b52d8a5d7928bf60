"""One scale for advantages of jobsets that vary a thousand times as much as others."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spreads:
    """How much groups of advantages vary.

    Attributes:
        count: float64 ``(groups,)``, rows of each.
        squares: float64 ``(groups,)``, sums of their squares.
    """

    count: NDArray[np.float64]
    squares: NDArray[np.float64]

    @staticmethod
    def of(advantages: NDArray[np.float64], group: NDArray[np.integer[Any]]) -> "Spreads":
        """Those of rows.

        Args:
            advantages: float64 ``(rows,)``.
            group: integers ``(rows,)``, for instance the jobset of each row.
        """
        count = np.bincount(group).astype(np.float64)
        return Spreads(count, np.bincount(group, advantages**2).astype(np.float64, copy=False))

    @property
    def values(self) -> NDArray[np.float64]:
        """Root mean square of each group, float64 ``(groups,)``; 0 of one without rows."""
        return np.sqrt(self.squares / np.maximum(self.count, 1.0))


@dataclass(frozen=True)
class Equalizer:
    """Scales advantages to a root mean square of 1, groups that vary much down to the others.

    A crowded jobset's returns vary a thousand times as much as an empty one's, and would drown
    them. Groups that vary little keep their place: what differs there is mostly noise.

    Attributes:
        floor: groups that vary more than this are scaled down to it.
        divisor: what all are divided by then, beside the larger of the floor and their own spread.
    """

    floor: float
    divisor: float

    @staticmethod
    def of(spreads: Spreads, share: float) -> "Equalizer":
        """That of all groups.

        Args:
            spreads: of all groups, with at least one row among them.
            share: of the groups, those that vary most, which are scaled down to the spread of the
                first that is not; 1 gives all groups the same spread, 0 divides all by one number.
        """
        count, squares, values = spreads.count, spreads.squares, spreads.values
        floor = float(np.quantile(values[count > 0], 1.0 - share))
        floor = max(floor, 0.01 * float(np.sqrt(squares.sum() / count.sum())), 1e-8)
        scaled = squares / np.maximum(values, floor) ** 2
        return Equalizer(floor, float(np.sqrt(scaled.sum() / count.sum())) + 1e-8)

    def __call__(
        self,
        advantages: NDArray[np.float64],
        group: NDArray[np.integer[Any]],
        spreads: Spreads,
    ) -> NDArray[np.float64]:
        """Scales rows.

        Args:
            advantages: float64 ``(rows,)``.
            group: integers ``(rows,)``, group of each.
            spreads: of these groups.

        Returns:
            float64 ``(rows,)``.
        """
        scale = np.maximum(spreads.values, self.floor) * self.divisor
        return advantages / scale[group]
