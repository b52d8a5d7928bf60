"""Dots with intervals, a line each, and numbers beside or above them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tune_jobs.figures.style import INK, TABLE_DPI, new_figure

_LETTER = 0.6  # of the size of letters: how wide they are
PANEL = 4.2  # inches of a panel with its names
_COLUMN = 0.8  # inches of a column of numbers beside it
_LINE, _HEAD = 0.2, 0.55  # inches of a line of a panel, and of what stands above and below them


def draw_dots(
    axes: Axes,
    rows: pd.DataFrame,
    column: str,
    *,
    lines: Iterable[float] | None = None,
    size: float = 5.0,
    width: float = 2.0,
    **mark: Any,
) -> None:
    """A mark for each row, and a bar for its interval, a line each, by default at 0, 1, ...

    Rows have the column, perhaps those of its interval (``_low`` and ``_high``), ``color`` and
    ``marker``. Sizes of marks and widths of bars are in points.
    """
    for line, (_, row) in zip(
        range(len(rows)) if lines is None else lines, rows.iterrows(), strict=True
    ):
        if f"{column}_low" in row:
            ends = row[f"{column}_low"], row[f"{column}_high"]
            axes.hlines(line, *ends, row["color"], linewidth=width, zorder=2)
        look = {"color": row["color"], "marker": row["marker"], "markersize": size, **mark}
        axes.plot(row[column], line, linestyle="none", zorder=3, **look)


def write_above(
    axes: Axes,
    values: Iterable[float],
    texts: Iterable[str],
    *,
    size: float = 9.5,
    offset: tuple[float, float] = (0, 9),
    align: str = "",
) -> None:
    """Writes a text above the mark of each line, from 0 on; size and offset are in points.

    Without an alignment, texts that would cross a side of the panel, whose limits are final, begin
    or end at their marks.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    letter = _LETTER * size / (72 * axes.get_position().width * figure.get_size_inches()[0])
    axes.get_xlim()  # limits that were left to matplotlib are set by now
    to_axes = axes.transData + axes.transAxes.inverted()
    for line, (value, text) in enumerate(zip(values, texts, strict=True)):
        across, half = to_axes.transform((value, line))[0], letter * len(text) / 2
        near = "left" if across < half else "right" if across > 1 - half else "center"
        axes.annotate(
            text,
            (value, line),
            xytext=offset,
            textcoords="offset points",
            ha=align or near,
            va="bottom",
            fontsize=size,
        )


def name_lines(
    axes: Axes, names: Iterable[str], *, size: float = 9.0, top: float = -0.6, **text: Any
) -> None:
    """Writes names beside lines, the first at the top, and leaves out what a list has no use for.

    Letters have a size in points; above the first line the panel ends at `top`, in lines.
    """
    names = list(names)
    axes.set_yticks(range(len(names)), names, fontsize=size, **text)
    axes.set_ylim(len(names) - 0.5, top)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def write_beside(
    axes: Axes,
    line: float,
    cells: Sequence[str],
    *,
    bold: bool = False,
) -> None:
    """Writes texts at the right end of an image, where its layout leaves room for them.

    The line is a place on the panel's y axis.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    share = _COLUMN / figure.get_size_inches()[0]
    for place, text in enumerate(cells):
        note = axes.annotate(
            text,
            (0.995 - share * (len(cells) - 1 - place), line),
            xycoords=("figure fraction", "data"),
            ha="right",
            va="center",
            fontsize=8.0,
            fontweight="bold" if bold else "normal",
            color=INK,
            annotation_clip=False,
        )
        note.set_in_layout(False)  # the layout leaves the right side free for them


def list_dots(
    axes: Axes,
    rows: pd.DataFrame,
    column: str,
    cells: Iterable[Sequence[str]],
    heads: Sequence[str],
) -> None:
    """A dot with its interval for each row, its name at the left and numbers at the right.

    Rows are as for `draw_dots`, also with ``label`` and ``is_learned``; the latter are bold. The
    panel is one of `panels_beside`.
    """
    draw_dots(axes, rows, column)
    for line, (texts, bold) in enumerate(zip(cells, rows["is_learned"], strict=True)):
        write_beside(axes, line, texts, bold=bold)
    write_beside(axes, -1, heads, bold=True)
    name_lines(axes, [label.replace("\n", " ") for label in rows["label"]])
    axes.tick_params(axis="x", labelsize=9)


def panels_beside(
    num_lines: Sequence[int],
    num_columns: int,
    panel: float,
) -> tuple[Figure, list[Axes]]:
    """Panels below each other, so many inches wide, with room for columns of numbers beside."""
    heights = [_HEAD + _LINE * count for count in num_lines]
    width = panel + _COLUMN * num_columns
    figure = new_figure(sum(heights) + 1.3, width, TABLE_DPI)
    figure.set_layout_engine("constrained", rect=(0, 0, panel / width, 1))
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    return figure, list(axes[:, 0])
