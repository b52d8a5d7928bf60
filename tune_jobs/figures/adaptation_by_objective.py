"""Where adaptation began and ended on the tasks of each objective, one line for each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tune_jobs.figures.adaptation_data import color_and_style
from tune_jobs.figures.adaptation_panels import measured_on
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOW, _HIGH = 0.5, 1.6  # beyond this range a mark is an arrow at the edge
_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6)
_METHOD_HEIGHT, _GAP = 0.13, 0.2  # inches


def draw_objectives(rows: Sequence[Cells], title: str) -> "Figure":
    """A group for each objective of a family, in it a line for each method.

    A line leads from the cost before adaptation (hollow) to that after the most steps (filled, with
    its interval).

    Args:
        rows: cells as `tune_jobs.figures.adaptation` collects them by objective.
        title: of the figure.
    """
    groups = list(dict.fromkeys((row["family"], row["objective"]) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    group_height = _METHOD_HEIGHT * len(methods) + _GAP
    with styled():
        figure = new_figure(1.7 + group_height * len(groups))
        axes = figure.subplots()
        headline(
            figure,
            title,
            f"{measured_on(rows)}. Hollow: before adaptation; filled: after the most steps "
            f"(right); arrows: beyond the axis. 1 is the best baseline on each task",
        )
        for place, (family, objective) in enumerate(groups):
            mine = [r for r in rows if (r["family"], r["objective"]) == (family, objective)]
            if place % 2:
                axes.axhspan(place - 0.5, place + 0.5, color="#f5f5f5", zorder=0)
            for k, method in enumerate(methods):
                points = [row for row in mine if row["method"] == method]
                if points:
                    shift = (k - (len(methods) - 1) / 2) * _METHOD_HEIGHT / group_height
                    color, _ = color_and_style(method, methods)
                    _draw_method(axes, place + shift, points, color)
        axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
        names = [f"{family}: {objective.replace('_', ' ')}" for family, objective in groups]
        axes.set_yticks(range(len(groups)), [name.replace(": ", ":\n") for name in names])
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, labelsize=9.5)
        axes.grid(visible=False, axis="y")
        _scale(axes)
        handles = [
            axes.plot([], [], color=color_and_style(name, methods)[0], marker="o", label=name)[0]
            for name in methods
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=9.5)
    return figure


def _draw_method(axes: "Axes", height: float, points: Sequence[Cells], color: str) -> None:
    """From the first number of steps to the last."""
    first, last = (number(points[place], "value") for place in (0, -1))
    low, high = (number(points[-1], name) for name in ("value_low", "value_high"))
    axes.plot(np.clip([first, last], _LOW, _HIGH), [height] * 2, color=color, linewidth=0.9)
    axes.hlines(height, max(low, _LOW), min(high, _HIGH), color=color, linewidth=3, alpha=0.4)
    for value, fill in ((first, "white"), (last, color)):
        axes.plot(
            np.clip(value, _LOW, _HIGH),
            height,
            marker=">" if value > _HIGH else "<" if value < _LOW else "o",
            markersize=5,
            markerfacecolor=fill,
            markeredgecolor=color,
            linestyle="none",
            zorder=3,
        )
    axes.annotate(
        points[-1]["step"],
        (1.01, height),
        xycoords=axes.get_yaxis_transform(),
        color=MUTED,
        fontsize=7.5,
        va="center",
        annotation_clip=False,
    )


def _scale(axes: "Axes") -> None:
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(_LOW * 0.98, _HIGH * 1.02)
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.set_xlabel("cost over the best baseline's")
