"""A soak: what each process gained after the warm-up, against what it may gain."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tune_jobs.figures.style import (
    GRID,
    INK,
    MUTED,
    headline,
    label_ends,
    new_figure,
    save,
    styled,
)
from tune_jobs.terminal.tables import Cells, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = {
    "heap_mib": "memory (MiB)",
    "descriptors": "descriptors",
    "threads": "threads",
    "blocks": "blocks of Python objects",
}
_COLORS = {
    "driver": "#d55e00",
    "runner": "#0072b2",
    "mlflow": "#009e73",
    "raylet": "#cc79a7",
    "gcs": "#e69f00",
}
_HEIGHT = 2.0


def draw(table: Path, warm_up_min: float, limits: Mapping[str, float], note: str) -> "Figure":
    """Draws the readings of a soak.

    Args:
        table: a row for each process and moment; see `tune_jobs.benchmarks.processes.Reading`.
        warm_up_min: where the change is counted from.
        limits: what a process may gain a minute, by quantity.
        note: what was run.

    Raises:
        InputError: if the table is none of readings.
    """
    rows = read_table(table, ("minutes", "process", *_PANELS))
    with styled():
        figure = new_figure(_HEIGHT * len(_PANELS) + 0.7)
        panels = figure.subplots(len(_PANELS), 1, sharex=True)
        labels = [
            _draw_panel(axes, rows, quantity, warm_up_min, limits[quantity])
            for axes, quantity in zip(panels, _PANELS, strict=True)
        ]
        for axes, name in zip(panels, _PANELS.values(), strict=True):
            axes.set_title(name)
        panels[-1].set_xlabel("minutes")
        headline(figure, "What each process has gained since the warm-up", note)
        for axes, ends in zip(panels, labels, strict=True):
            label_ends(axes, ends, size=9)
    return figure


def draw_soak(
    table: Path, image: Path, warm_up_min: float, limits: Mapping[str, float], note: str
) -> None:
    """The same, written to a file."""
    save(draw(table, warm_up_min, limits, note), image)


def _draw_panel(
    axes: "Axes", rows: Sequence[Cells], quantity: str, warm_up_min: float, limit: float
) -> list[tuple[float, str, str]]:
    """Draws the lines of one quantity, and returns what is to be written beside them."""
    end = max(number(row, "minutes") for row in rows)
    allowed = limit * (end - warm_up_min)
    labels = [(allowed, f"limit: {limit:g}/min", INK)]
    low, high = -0.2 * allowed, 1.2 * allowed
    for process in dict.fromkeys(row["process"] for row in rows):
        own = [row for row in rows if row["process"] == process]
        minutes, values = _column(own, "minutes"), _column(own, quantity)
        late = values[minutes >= warm_up_min]
        if minutes[0] > warm_up_min or minutes[-1] < end or np.isnan(late).any():
            continue
        tenth = max(1, late.size // 10)
        gained = values - np.median(late[:tenth])
        role = process.rstrip(" 0123456789")
        color = _COLORS.get(role, MUTED)
        axes.plot(minutes, gained, color=color, linewidth=1.3 if role in _COLORS else 0.6)
        low, high = min(low, gained[-late.size :].min()), max(high, gained[-late.size :].max())
        if role in _COLORS and np.ptp(gained[-late.size :]) > 0.01 * allowed:  # others lie on zero
            labels.append((float(np.median(gained[-tenth:])), process, color))
    axes.plot([warm_up_min, end], [0, allowed], color=INK, linestyle="--", linewidth=1)
    axes.axvspan(0, warm_up_min, color=GRID, alpha=0.5, linewidth=0)
    axes.set(xlim=(0, end), ylim=(max(low, -high), high))
    return labels


def _column(rows: Sequence[Cells], name: str) -> NDArray[np.float64]:
    return np.array([number(row, name) for row in rows])
