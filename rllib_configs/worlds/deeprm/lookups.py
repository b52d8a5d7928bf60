"""DeepRM's image as look-ups in a table, for a dense layer that reads the image.

In every block of the image, the ones are those of a prefix: the first k columns of a row, the
upper left d x k cells, or the first k cells row by row. A block therefore adds to the output of a
dense layer one of a few sums of the layer's weights, and ``image @ weight`` is the sum of one row
of a table of such sums for each block: 61 rows instead of 4,460 products with the default cluster.
The table is linear in the weight, so a gradient finds its way back through the transpose.

The released code appends a column to the image that is not made of ones: the time since the last
arrival, up to 10 steps, as a share of 10 in every row. It is one more look-up.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.compiled import njit
from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm.image import ImageLayout, image
from cluster_env.worlds.deeprm.state import StateLayout

Floats = NDArray[Any]  # float32 or float64
Kind = Literal["occupied", "slot", "backlog", "since"]

LONGEST_PAUSE = 10
"""Time steps since the last arrival at which the released code's column saturates."""

_SHARES = np.arange(LONGEST_PAUSE + 1) / LONGEST_PAUSE


@dataclass(frozen=True)
class TableBlock:
    """A block of the image and its part of the table.

    The part has ``rows x prefixes`` entries, row-major. With ``w`` the weights of the block's
    cells, ``(horizon, width, hidden)``:

    * ``occupied``: ``horizon`` rows, one look-up each; entry (h, k) is ``w[h, :k].sum(0)``.
    * ``slot``: ``horizon + 1`` rows, one look-up; entry (d, k) is ``w[:d, :k].sum((0, 1))``.
    * ``backlog``: one row, one look-up; entry k is the sum of the first k cells, row by row.
    * ``since``: one row, one look-up; entry k is ``k / 10 * w[:, 0].sum(0)``.

    Attributes:
        kind: which of these.
        columns: columns of the image.
        entries: entries of the table.
        rows: see above.
        prefixes: one more than the largest k.
    """

    kind: Kind
    columns: slice
    entries: slice
    rows: int
    prefixes: int


@dataclass(frozen=True)
class LookupLayout:
    """The table's entries, and which of them a state looks up.

    Look-ups and entries follow the columns of the image: for each resource, the cluster block
    (one look-up for each time step of the horizon), then one for each slot; at last the backlog
    and, where it is shown, the time since the last arrival.

    Attributes:
        layout: where the parts of a state lie.
        since_column: whether the image has the released code's last column. The weight then has
            `horizon` more rows at its end, those of that column.
    """

    layout: StateLayout
    since_column: bool = False

    @cached_property
    def image(self) -> ImageLayout:
        """The image that the look-ups stand for."""
        return ImageLayout(self.layout.cluster)

    @cached_property
    def blocks(self) -> tuple[TableBlock, ...]:
        """All blocks, in the order of their columns; their entries fill the table."""
        cluster = self.layout.cluster
        found: list[TableBlock] = []

        def add(kind: Kind, columns: slice, rows: int, prefixes: int) -> None:
            first = found[-1].entries.stop if found else 0
            entries = slice(first, first + rows * prefixes)
            found.append(TableBlock(kind, columns, entries, rows, prefixes))

        for r, units in enumerate(cluster.capacity):
            add("occupied", self.image.occupied_columns(r), cluster.horizon, units + 1)
            for slot in range(cluster.num_slots):
                columns = self.image.slot_columns(r, slot)
                add("slot", columns, cluster.horizon + 1, units + 1)
        add("backlog", self.image.backlog_columns, 1, cluster.backlog_view + 1)
        if self.since_column:
            last = self.image.backlog_columns.stop
            add("since", slice(last, last + 1), 1, LONGEST_PAUSE + 1)
        return tuple(found)

    @property
    def num_lookups(self) -> int:
        """Entries that each state looks up; 61 for the default cluster."""
        cluster = self.layout.cluster
        shown = (cluster.horizon + cluster.num_slots) * cluster.num_resources + 1
        return shown + int(self.since_column)

    @property
    def num_inputs(self) -> int:
        """Rows of the weight: the cells of the image; 4,460 for the default cluster."""
        extra = self.layout.cluster.horizon if self.since_column else 0
        return int(self.image.size) + extra

    @property
    def num_entries(self) -> int:
        """Entries (rows) of the table; 5,121 for the default cluster."""
        return int(self.blocks[-1].entries.stop)

    def lookups(self, states: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Returns the entries whose sum is ``image @ weight``.

        Args:
            states: uint8 ``(n, state_size)``.

        Returns:
            int32 ``(n, num_lookups)``.

        Raises:
            InputError: if the states have the wrong shape or type.
        """
        require_states(states, self.layout.space)
        cluster = self.layout.cluster
        found = np.empty((states.shape[0], self.num_lookups), np.int32)
        _look_up(
            states,
            self.layout.shape.capacity,
            cluster.horizon,
            cluster.num_slots,
            cluster.backlog_view,
            self.since_column,
            found,
        )
        return found

    def cells(self, states: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Draws the image row by row, float32 ``(n, num_inputs)``, then its last column if any."""
        drawn = image(self.layout, states).reshape(states.shape[0], -1).astype(np.float32)
        if not self.since_column:
            return drawn
        share = np.minimum(states[:, self.layout.since, None], LONGEST_PAUSE) / LONGEST_PAUSE
        column = share.astype(np.float32).repeat(self.layout.cluster.horizon, axis=1)
        return np.concatenate([drawn, column], axis=1)

    def prefix_table(self, weight: Floats) -> Floats:
        """Returns the table of a weight; sums are taken in float64.

        Args:
            weight: float32 or float64 ``(num_inputs, hidden)``.

        Returns:
            The table, of the weight's type, ``(num_entries, hidden)``.

        Raises:
            InputError: if the weight has the wrong shape or type.
        """
        hidden = _width_of(weight, self.num_inputs, "a weight")
        table: Floats = np.empty((self.num_entries, hidden), weight.dtype)
        cells, column = self._cut(np.ascontiguousarray(weight))
        for block in self.blocks:
            part = table[block.entries].reshape(block.rows, block.prefixes, hidden)
            own = cells[:, block.columns]
            if block.kind == "occupied":
                _sum_cells(own, False, part)
            elif block.kind == "slot":
                part[0] = 0.0
                _sum_cells(own, True, part[1:])
            elif block.kind == "backlog":
                _sum_cells(own.reshape(1, -1, hidden)[:, : block.prefixes - 1], False, part)
            else:
                part[0] = _SHARES[:, None] * column.sum(axis=0, dtype=np.float64)
        return table

    def spread_table_gradient(self, gradient: Floats) -> Floats:
        """Returns the gradient of the weight, given that of the table: the transposed map.

        Args:
            gradient: float32 or float64 ``(num_entries, hidden)``.

        Returns:
            Of the gradient's type, ``(num_inputs, hidden)``.

        Raises:
            InputError: if the gradient has the wrong shape or type.
        """
        hidden = _width_of(gradient, self.num_entries, "a table's gradient")
        spread: Floats = np.empty((self.num_inputs, hidden), gradient.dtype)
        cells, column = self._cut(spread)
        for block in self.blocks:
            part = gradient[block.entries].reshape(block.rows, block.prefixes, hidden)
            own = cells[:, block.columns]
            if block.kind == "occupied":
                _spread_sums(part, False, own)
            elif block.kind == "slot":
                _spread_sums(part[1:], True, own)
            elif block.kind == "backlog":
                flat = np.zeros_like(own).reshape(1, -1, hidden)  # cells that no backlog fills: 0
                _spread_sums(part, False, flat[:, : block.prefixes - 1])
                own[:] = flat.reshape(own.shape)
            else:
                column[:] = (_SHARES[:, None] * part[0]).sum(axis=0)
        return spread

    def _cut(self, weight: Floats) -> tuple[Floats, Floats]:
        """Weights of the image's cells and of the last column, by row."""
        size, hidden = int(self.image.size), weight.shape[1]
        return weight[:size].reshape(*self.image.shape, hidden), weight[size:]


def _width_of(array: Floats, rows: int, what: str) -> int:
    if array.ndim != 2 or array.shape[0] != rows or array.dtype not in (np.float32, np.float64):
        raise InputError(
            f"{what} has the shape ({rows}, hidden) and the type float32 or float64, but "
            f"{array.shape} and {array.dtype} were given"
        )
    return int(array.shape[1])


@njit(cache=True, nogil=True)
def _look_up(
    states: NDArray[np.uint8],
    capacity: NDArray[np.int64],
    horizon: int,
    num_slots: int,
    backlog_view: int,
    since_column: bool,
    out: NDArray[np.int32],
) -> None:
    resources = capacity.size
    slots_at = horizon * resources
    backlog_at = slots_at + num_slots * (1 + resources)
    for i in range(states.shape[0]):
        state = states[i]
        k = 0
        entry = 0
        for r in range(resources):
            # The cluster's block: an entry for each step, by the units in use.
            prefixes = capacity[r] + 1
            for h in range(horizon):
                out[i, k] = entry + state[h * resources + r]
                entry += prefixes
                k += 1
            # A slot's block: one entry, by duration and demand.
            for slot in range(num_slots):
                place = slots_at + slot * (1 + resources)
                out[i, k] = entry + state[place] * prefixes + state[place + 1 + r]
                entry += (horizon + 1) * prefixes
                k += 1
        # The backlog's block, and the released code's column, saturate as the image does.
        out[i, k] = entry + min(int(state[backlog_at]), backlog_view)
        if since_column:
            out[i, k + 1] = (
                entry + backlog_view + 1 + min(int(state[backlog_at + 1]), LONGEST_PAUSE)
            )


@njit(cache=True, nogil=True)
def _sum_cells(cells: Floats, downwards: bool, table: Floats) -> None:
    """Sums of the beginnings of each row, ``(rows, prefixes, hidden)``; with those of all above."""
    rows, units, hidden = cells.shape
    row = np.empty(hidden)
    total = np.zeros((units, hidden))
    for h in range(rows):
        row[:] = 0.0
        table[h, 0] = 0.0
        # A rectangle is the one above it and the beginning of this row.
        for k in range(units):
            for j in range(hidden):
                row[j] += cells[h, k, j]
                total[k, j] = row[j] + (total[k, j] if downwards else 0.0)
                table[h, k + 1, j] = total[k, j]


@njit(cache=True, nogil=True)
def _spread_sums(table: Floats, downwards: bool, cells: Floats) -> None:
    """The transpose of `_sum_cells`: a cell is in all sums that end at it or behind it."""
    rows, units, hidden = cells.shape
    row = np.empty(hidden)
    total = np.zeros((units, hidden))
    for h in range(rows - 1, -1, -1):
        row[:] = 0.0
        for k in range(units - 1, -1, -1):
            for j in range(hidden):
                row[j] += table[h, k + 1, j]
                total[k, j] = row[j] + (total[k, j] if downwards else 0.0)
                cells[h, k, j] = total[k, j]
