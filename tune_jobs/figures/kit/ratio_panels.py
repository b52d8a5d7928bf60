"""Panels beside each other, one for each log, with ratios and their intervals on a line each."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.style import TABLE_DPI, new_figure, plain_ticks

_COLUMNS, _LINE, _HEAD = 3, 0.17, 0.75  # panels beside each other; inches
_WIDTH, _NAMES = 2.8, 2.4  # inches of a panel, and of the names of lines
_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 300, 1000)
_MOST_TICKS = 6  # of a panel
_APART = 0.05  # of the width of a panel


def draw_ratio_panels(
    rows: pd.DataFrame, by: str, names: Sequence[str], title: Callable[[pd.Series], str]
) -> Figure:
    """A panel for each value of the column ``log``, with a line for each of some names.

    Args:
        rows: with ``log``, ``ratio``, perhaps ``ratio_low`` and ``ratio_high``, ``color`` and
            ``marker``.
        by: the column that holds the names.
        names: of the lines, from the top.
        title: of a panel, from the first of its rows.
    """
    logs = list(rows.groupby("log", sort=False))
    columns = min(_COLUMNS, len(logs))
    lines = -(-len(logs) // columns)
    height = lines * (_HEAD + _LINE * len(names)) + 1.0
    figure = new_figure(height, _NAMES + _WIDTH * columns, TABLE_DPI)
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, (_, own) in zip(panels, logs, strict=False):
        own = own.set_index(by, drop=False).reindex(names)
        axes.axvline(1, color="#8a8a8a", linewidth=0.8, zorder=1)
        draw_dots(axes, own, "ratio", size=4.5, width=1.5)
        axes.set_xscale("log")
        shown = own[["ratio", "ratio_low", "ratio_high"]]  # one week alone has no intervals
        low, high = np.nanmin(shown), np.nanmax(shown)
        axes.set_xlim(min(low, 0.8) * 0.93, max(high, 1.3) * 1.08)
        within = [tick for tick in _TICKS if low * 0.93 <= tick <= high * 1.08 or tick == 1]
        step = -(-len(within) // _MOST_TICKS)
        # Next to 1 there is room for no other number where a panel spans much.
        apart = _APART * np.log(high / low)
        shown_ticks = within[within.index(1) % step :: step]
        plain_ticks(
            axes.xaxis, [tick for tick in shown_ticks if tick == 1 or abs(np.log(tick)) >= apart]
        )
        axes.tick_params(axis="x", labelsize=8)
        axes.set_title(title(own.dropna(subset="log").iloc[0]), fontsize=8.5)
    name_lines(panels[0], names, size=8.5)
    for axes in panels:
        axes.tick_params(axis="y", labelsize=8.5, length=0)
        axes.grid(visible=False, axis="y")
    for axes in panels[len(logs) :]:
        axes.set_visible(False)
    return figure
