"""A picture of a state, like figure 2 of the DeepRM paper but with labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.pictures import Color, Pixels, job_color, pixels_of
from cluster_env.worlds.deeprm.image import ImageLayout
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator

_CELL = 9  # pixels, the line to the next cell included
_GAP = 14  # between blocks
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 30, 62, 14  # margins
_BETWEEN_ROWS = 34
_DPI = 100
_FREE_COLOR: Color = (233, 235, 239)
_BACKLOG_COLOR: Color = (92, 99, 112)
_FREE, _WAITING = -1, -2  # cells that no job of its own color fills


@dataclass(frozen=True)
class Block:
    """A titled rectangle of cells: indices of jobs, or free, or waiting in the backlog."""

    title: str
    left: int  # first pixels
    top: int
    cells: NDArray[np.int32]  # (rows, columns)


def allocation(simulator: DeepRMSimulator, episode: int) -> NDArray[np.int32]:
    """The job that holds each cell of the cluster images, or -1.

    A row is one coming time step; its cells are given from the left in the order in which jobs
    were placed, as in the released code. int32 ``(num_resources, horizon, largest capacity)``.
    """
    cluster, state, jobs = simulator.cluster, simulator.state, simulator.schedule()
    shape = (cluster.num_resources, cluster.horizon, max(cluster.capacity))
    cells = np.full(shape, _FREE, np.int32)
    used = np.zeros((cluster.horizon, cluster.num_resources), np.int32)
    first = int(np.searchsorted(jobs.episode, episode))  # the episode's first row of the schedule
    for job in state.running[episode, : state.num_running[episode]]:
        start = int(jobs.start[first + job] - state.clock[episode])
        for h in range(max(start, 0), start + int(jobs.duration[first + job])):
            for r, units in enumerate(jobs.demand[first + job]):
                cells[r, h, used[h, r] : used[h, r] + units] = job
                used[h, r] += units
    return cells


def draw(simulator: DeepRMSimulator, episode: int) -> Pixels:
    """Draws cluster, slots and backlog of an episode, uint8 ``(height, width, 3)``.

    Each row of blocks is a resource, each cell one unit for one time step, the present step on
    top. A job keeps its color from the slot to the cluster. The size depends on the cluster alone.
    """
    blocks = _blocks(simulator, episode)
    height = max(block.top + block.cells.shape[0] * _CELL for block in blocks) + _BOTTOM
    width = max(block.left + block.cells.shape[1] * _CELL for block in blocks) + _RIGHT
    pixels = np.full((height, width, 3), 255, np.uint8)
    for block in blocks:
        colors = np.empty((*block.cells.shape, 3), np.uint8)
        for cell in np.unique(block.cells):
            colors[block.cells == cell] = _color(int(cell))
        # A cell becomes a square, whose last row and column of pixels are a white line.
        squares = colors.repeat(_CELL, axis=0).repeat(_CELL, axis=1)
        squares[_CELL - 1 :: _CELL] = 255
        squares[:, _CELL - 1 :: _CELL] = 255
        rows = slice(block.top, block.top + squares.shape[0])
        pixels[rows, block.left : block.left + squares.shape[1]] = squares
    return _label(pixels, blocks, simulator, episode)


def _blocks(simulator: DeepRMSimulator, episode: int) -> list[Block]:
    """Lays out the blocks: one row for each resource, the backlog at the right of the first."""
    cluster, state = simulator.cluster, simulator.state
    booked = allocation(simulator, episode)
    waiting = simulator.layout.slots_of(simulator.states)[episode]
    pitch = max(cluster.capacity) * _CELL + _GAP
    blocks = []
    for r, units in enumerate(cluster.capacity):
        # The cluster, and beside it the job of each slot, in its color.
        top = _TOP + r * (cluster.horizon * _CELL + _BETWEEN_ROWS)
        blocks.append(Block("Cluster", _LEFT, top, booked[r, :, :units]))
        for slot in range(cluster.num_slots):
            cells = np.full((cluster.horizon, units), _FREE, np.int32)
            duration, demand = waiting[slot, 0], waiting[slot, 1 + r]
            cells[:duration, :demand] = state.slots[episode, slot]
            blocks.append(Block(f"Slot {slot + 1}", _LEFT + (slot + 1) * pitch, top, cells))
    # A cell for each job of the backlog, row by row, as in the image.
    if cluster.backlog_view:
        columns = ImageLayout(cluster).backlog_width
        cells = np.full((cluster.horizon, columns), _FREE, np.int32)
        cells.flat[: min(_backlog(simulator, episode), cluster.backlog_view)] = _WAITING
        left = _LEFT + (1 + cluster.num_slots) * pitch + _GAP
        blocks.append(Block("Backlog", left, _TOP, cells))
    return blocks


def _backlog(simulator: DeepRMSimulator, episode: int) -> int:
    """Number of jobs in the backlog."""
    return int(simulator.state.backlog_tail[episode] - simulator.state.backlog_head[episode])


def _color(cell: int) -> Color:
    if cell == _FREE:
        return _FREE_COLOR
    return _BACKLOG_COLOR if cell == _WAITING else job_color(cell)


def _label(pixels: Pixels, blocks: list[Block], simulator: DeepRMSimulator, episode: int) -> Pixels:
    """Adds the text with matplotlib, which is needed only here."""
    from matplotlib.figure import Figure

    height, width = pixels.shape[:2]
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    figure.figimage(pixels)

    def write(x: float, y: float, text: str, size: float, **style: Any) -> None:
        figure.text(x / width, 1 - y / height, text, fontsize=size, color="0.15", **style)

    # A headline of numbers, and a title above each block.
    cluster, state = simulator.cluster, simulator.state
    headline = (
        f"time {state.clock[episode]}     placed and unfinished {state.num_running[episode]}     "
        f"slots {state.num_in_slots[episode]} of {cluster.num_slots}     "
        f"backlog {_backlog(simulator, episode)}"
    )
    write(_LEFT, 24, headline, 10, weight="bold")
    for block in blocks:
        write(block.left, block.top - 6, block.title, 8)
    # At the left of each row its resource, and every fifth step.
    for r in range(cluster.num_resources):
        top = blocks[r * (1 + cluster.num_slots)].top
        middle = top + cluster.horizon * _CELL / 2
        write(14, middle, f"resource {r + 1}", 8, rotation=90, va="center", ha="center")
        for step in range(0, cluster.horizon, 5):
            y = top + (step + 0.5) * _CELL
            write(_LEFT - 5, y, f"+{step}" if step else "now", 7, va="center", ha="right")
    return pixels_of(figure)
