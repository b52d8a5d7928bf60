"""The thesis's image of a state (Cunha, section 4.4 and figures 4.2 and 4.3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds.hpc.state import StateLayout

BACKLOG = 60
"""Jobs beyond those that are seen that the image shows (section 5.1.1)."""

_MOST_CELLS = 2**24


@dataclass(frozen=True)
class ImageView:
    """Draws states.

    Rows are moments of the horizon, now first. Columns are, for each resource, a block for the
    machine and one for each job that is seen, as wide as the machine has units; the last block is
    the backlog, row by row. In the machine's block as many cells from the left are 1 as units are
    expected to be in use; a job is a rectangle of requested time x units.

    Attributes:
        capacity: units of each resource of the machine, processors first.
        layout: of the states.
        step: seconds from row to row, at least 1.
    """

    capacity: tuple[int, ...]
    layout: StateLayout
    step: int

    def __post_init__(self) -> None:
        rows, columns = self.shape
        if rows * columns > _MOST_CELLS:
            raise InputError(
                f"an image of this machine has {rows:,} x {columns:,} cells, more than "
                f"{_MOST_CELLS:,}; the observations compact and events are as large for any machine"
            )

    @property
    def backlog_width(self) -> int:
        """Columns of the backlog."""
        return -(-BACKLOG // self.layout.horizon)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        blocks = (1 + self.layout.queue) * sum(self.capacity)
        return self.layout.horizon, blocks + self.backlog_width

    def draw(self, states: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Draws states, int32 ``(n, state_size)``, as uint8 ``(n, rows, columns)`` of 0 and 1."""
        layout, n = self.layout, states.shape[0]
        moments = np.arange(layout.horizon)
        rows = states[:, layout.rows_at : layout.arrivals_at].reshape(n, layout.horizon, -1)
        jobs = states[:, layout.jobs_at : layout.clock_at].reshape(n, layout.queue, -1)
        lasts = moments[:, None] * self.step < jobs[:, None, :, 0]  # (n, horizon, queue)
        column = 0
        for r, units in enumerate(self.capacity):
            places = np.arange(units)
            used = units - rows[:, :, 1 + r]
            out[:, :, column : column + units] = places < used[:, :, None]
            column += units
            for slot in range(
                layout.queue
            ):  # one by one: most of a queue is empty most of the time
                size = jobs[:, slot, 2 + r]
                block = out[:, :, column : column + units]
                block[:] = 0
                if size.any():
                    block[:] = lasts[:, :, slot, None] & (places < size[:, None, None])
                column += units
        backlog = np.arange(layout.horizon * self.backlog_width).reshape(layout.horizon, -1)
        out[:, :, column:] = backlog < (states[:, 0] - layout.queue)[:, None, None]
