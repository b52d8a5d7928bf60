"""Curves: means along an axis with their intervals, and what stands at their ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import NDArray

from tune_jobs.figures.style import new_figure

Style = str | tuple[int, tuple[int, ...]]
"""Of a line, as matplotlib has it."""

End = tuple[float, str, str]
"""Height, text and color of a label for `tune_jobs.figures.style.label_ends`."""

_PANEL_HEIGHT = 3.3  # inches
_MOST_TICKS = 5  # numbers of four digits below half a page leave each other alone


@dataclass(frozen=True, eq=False)
class Curve:
    """Means along an axis, ascending, with intervals: float64 arrays ``(num_points,)``.

    The name stands at its end, or in the legend; the width of the line is in points.
    """

    name: str
    color: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    style: Style = "-"
    marker: str = ""
    width: float = 1.6

    @classmethod
    def of(cls, rows: pd.DataFrame, x: str, y: str, **look: Any) -> "Curve":
        """A point for each row; the ends of its interval are columns ``_low`` and ``_high``."""
        places, *estimates = (rows[name].to_numpy() for name in (x, y, f"{y}_low", f"{y}_high"))
        return cls(x=places, **dict(zip(("y", "low", "high"), estimates, strict=True)), **look)


def seeds_curve(
    rows: pd.DataFrame, column: str, *, seed: str = "seed", parts: int = 0, **look: Any
) -> Curve:
    """Mean, lowest and highest of several seeds at the iterations that all have recorded.

    Args:
        rows: a row for each seed and ``iteration``.
        column: what is drawn.
        seed: the column that tells seeds apart.
        parts: means over so many parts of the curve are drawn, if not 0, instead of each iteration.
        look: other fields of `Curve`.
    """
    table = rows.pivot(index="iteration", columns=seed, values=column).dropna()
    x, values = table.index.to_numpy(np.float64), table.to_numpy(np.float64)
    if parts and x.size:
        pieces = np.array_split(np.arange(x.size), min(parts, x.size))
        x = np.array([x[piece].mean() for piece in pieces])
        values = np.array([values[piece].mean(axis=0) for piece in pieces])
    return Curve(
        x=x, y=values.mean(axis=1), low=values.min(axis=1), high=values.max(axis=1), **look
    )


def draw_curves(
    axes: Axes,
    curves: Sequence[Curve],
    intervals: Literal["band", "bars", "caps"] = "band",
    apart: float = 0.0,
) -> list[End]:
    """Draws curves, each with its intervals and a label for a legend.

    Args:
        axes: where to draw.
        curves: what to draw; one without points is left out.
        intervals: a band along the curve, a bar at each point, or one with caps.
        apart: points between the bars of one curve and the next, which would hide each other; the
            limits of the axes then do not follow the curves.

    Returns:
        A label for the end of each curve that has a name.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    drawn = [curve for curve in curves if curve.x.size]
    for place, curve in enumerate(drawn):
        beside: Transform = axes.transData
        if apart:
            shift = apart * (place - (len(drawn) - 1) / 2) / 72
            beside = axes.transData + ScaledTranslation(shift, 0, figure.dpi_scale_trans)
        axes.plot(
            curve.x,
            curve.y,
            color=curve.color,
            linestyle=curve.style,
            linewidth=curve.width,
            marker=curve.marker or None,
            markersize=4.5,
            label=curve.name,
            zorder=3,
            transform=beside,
        )
        if intervals == "band":
            axes.fill_between(
                curve.x, curve.low, curve.high, color=curve.color, alpha=0.18, linewidth=0
            )
        elif intervals == "bars":
            axes.vlines(
                curve.x,
                curve.low,
                curve.high,
                color=curve.color,
                linewidth=1.3,
                alpha=0.5,
                transform=beside,
            )
        else:
            axes.errorbar(
                curve.x,
                curve.y,
                [curve.y - curve.low, curve.high - curve.y],
                fmt="none",
                ecolor=curve.color,
                capsize=3,
                transform=beside,
            )
    return [(float(curve.y[-1]), curve.name, curve.color) for curve in drawn if curve.name]


def draw_levels(axes: Axes, levels: Iterable[End]) -> list[End]:
    """Dashed lines across the panel, at the heights of what does not change along the axis."""
    levels = list(levels)
    for height, _, color in levels:
        axes.axhline(height, color=color, linewidth=1.2, linestyle=(0, (5, 2)), zorder=1)
    return levels


def count_iterations(axes: Axes, last: float) -> None:
    """Names the x axis after iterations, which are whole numbers up to the last."""
    axes.set_xlabel("iteration")
    axes.set_xlim(0, last)
    axes.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS, integer=True))


def grid_of_panels(num_panels: int) -> tuple[Figure, list[Axes]]:
    """A figure of page width with so many panels in two columns."""
    columns = min(num_panels, 2)
    lines = -(-num_panels // columns)
    figure = new_figure(1.0 + lines * _PANEL_HEIGHT)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[num_panels:]:
        axes.remove()
    return figure, list(panels[:num_panels])
