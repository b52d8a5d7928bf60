"""DeepRM's image of a state (DeepRM, section 3.2 and figure 2)."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import output, require_states
from cluster_env.core.compiled import njit
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.state import StateLayout, StateShape

_ALL_ROWS = 255  # a height above every row's index; horizons are at most 255


@dataclass(frozen=True)
class ImageLayout:
    """Where the parts of the image lie.

    Rows are the coming time steps, the present one first. Columns are, for each resource, one
    block for the cluster and one for each slot, as wide as the resource has units; the last block
    is the backlog. The default cluster gives 20 x 223 cells, for which a network of 20 hidden
    units has the paper's 89,451 parameters. The released code has one column more, the time since
    the last arrival.
    """

    cluster: Cluster

    @cached_property
    def backlog_width(self) -> int:
        """Columns of the backlog block."""
        return -(-self.cluster.backlog_view // self.cluster.horizon)

    @cached_property
    def width(self) -> int:
        """Columns of the image."""
        return int(self.backlog_columns.stop)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the image."""
        return self.cluster.horizon, self.width

    @property
    def size(self) -> int:
        """Cells of the image."""
        return self.cluster.horizon * self.width

    def occupied_columns(self, resource: int) -> slice:
        """Columns of the cluster block of a resource."""
        blocks = 1 + self.cluster.num_slots
        first = blocks * sum(self.cluster.capacity[:resource])
        return slice(first, first + self.cluster.capacity[resource])

    def slot_columns(self, resource: int, slot: int) -> slice:
        """Columns of the block of a slot for a resource."""
        units = self.cluster.capacity[resource]
        first = int(self.occupied_columns(resource).stop) + slot * units
        return slice(first, first + units)

    @property
    def backlog_columns(self) -> slice:
        """Columns of the backlog block."""
        first = (1 + self.cluster.num_slots) * sum(self.cluster.capacity)
        return slice(first, first + self.backlog_width)


def image(
    layout: StateLayout, states: NDArray[np.uint8], out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Draws DeepRM's image of each state, uint8 ``(n, horizon, width)`` of zeros and ones.

    In a cluster block, row ``h`` has as many ones from the left as units are in use ``h`` steps
    ahead. In a slot's block, the job is a rectangle of duration x demand in the upper left corner.
    The backlog block has as many ones as jobs wait there, row by row, `backlog_view` at most. All
    else is 0. The paper colors the cells of different jobs differently; only whether a cell is in
    use can be learned from, so all are 1 here.

    Raises:
        InputError: if an array has the wrong shape or type.
    """
    require_states(states, layout.space)
    drawn = output(out, (states.shape[0], *_shape_of(layout.cluster)), np.uint8)
    _draw(states, layout.shape, drawn)
    return drawn


@lru_cache
def _shape_of(cluster: Cluster) -> tuple[int, int]:
    return ImageLayout(cluster).shape


@njit(cache=True, nogil=True)
def _draw(states: NDArray[np.uint8], shape: StateShape, out: NDArray[np.uint8]) -> None:
    """Draws row by row, each row as one comparison.

    A column of a slot or of the backlog is known by its height, the number of ones from the top,
    so that a row is the comparison of all heights with the row's index, which compiles to vector
    instructions. The cluster's columns have no height; theirs are set before each row, which is
    little work because neighboring rows differ little. Rows are written in whole vectors; what
    sticks out at their end is overwritten by the next row.
    """
    n, horizon, width = out.shape
    capacity, resources = shape.capacity, shape.capacity.size
    size = horizon * width
    padded = (width + 31) // 32 * 32  # whole vectors of 32 bytes: no scalar rest in each row
    height = np.zeros(padded, np.uint8)
    for i in range(n):
        state = states[i]
        cells = out[i].reshape(size)
        top = _measure_heights(state, shape, height)
        for h in range(top):
            # Bring the cluster's columns from the row above to this one.
            column = 0
            for r in range(resources):
                now = int(state[h * resources + r])
                before = int(state[(h - 1) * resources + r]) if h > 0 else 0
                if now != before:
                    ones = np.uint8(_ALL_ROWS) if now > before else np.uint8(0)
                    for unit in range(min(now, before), max(now, before)):
                        height[column + unit] = ones
                column += capacity[r] * (1 + shape.num_slots)
            # Write the row. It may not reach beyond the image, which the last rows would.
            row = cells[h * width : min(h * width + padded, size)]
            for k in range(row.size):
                row[k] = height[k] > np.uint8(h)
        # Nothing is below the last row in use.
        cells[top * width :] = 0


@njit(cache=True, inline="always")
def _measure_heights(state: NDArray[np.uint8], shape: StateShape, height: NDArray[np.uint8]) -> int:
    """Writes the height of each column outside the cluster blocks; returns the rows in use."""
    capacity, horizon, resources = shape.capacity, shape.horizon, shape.capacity.size
    height[:] = 0
    # Rows below the last one in use stay empty: most states use a few of the horizon's rows.
    used = horizon * resources
    while used > 0 and state[used - 1] == 0:
        used -= 1
    top = (used + resources - 1) // resources
    # In a slot's block, the first columns are as high as the job is long.
    column = 0
    for r in range(resources):
        column += capacity[r]
        place = shape.slots_at
        for _ in range(shape.num_slots):
            duration = state[place]
            top = max(top, int(duration))
            for unit in range(state[place + 1 + r]):
                height[column + unit] = duration
            place += 1 + resources
            column += capacity[r]
    # The backlog fills its block row by row, so that columns at the left may be one higher.
    waiting = min(int(state[shape.backlog_at]), shape.backlog_view)
    if waiting > 0:
        backlog_width = (shape.backlog_view + horizon - 1) // horizon
        for unit in range(backlog_width):
            height[column + unit] = (waiting + backlog_width - 1 - unit) // backlog_width
        top = max(top, int(height[column]))
    return top
