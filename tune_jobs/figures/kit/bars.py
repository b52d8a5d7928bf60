"""Bars in groups, and axes of times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cluster_env.core.durations import duration
from tune_jobs.figures.style import plain_ticks

_TIMES = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_UPRIGHT = 45  # letters of all labels that stand side by side
_SHARE = 0.8  # of a group's room that its bars take
_FILLED = 0.94  # of a bar's own room


def draw_groups(
    axes: Axes,
    series: Sequence[tuple[str, str, pd.DataFrame]],
    *,
    horizontal: bool = False,
    upright: bool = False,
) -> None:
    """A group of bars for each place, with a bar for each series.

    A series is a name, a color and rows with ``label`` and ``y``, one for each group. Bars may lie,
    the first group at the top; labels are upright where there is room for them side by side.
    """
    thickness = _SHARE / len(series)
    for place, (name, color, rows) in enumerate(series):
        begin = np.arange(len(rows)) + place * thickness
        draw = axes.barh if horizontal else axes.bar
        draw(begin, rows["y"], _FILLED * thickness, align="edge", color=color, label=name)
    labels = series[0][2]["label"]
    middles = np.arange(len(labels)) + _SHARE / 2
    if horizontal:
        axes.set_yticks(middles, labels, fontsize=8)
        axes.invert_yaxis()
    elif upright:
        axes.set_xticks(middles, labels)
    else:
        turned: dict[str, Any] = (
            {"rotation": 30, "ha": "right"} if labels.str.len().sum() > _UPRIGHT else {}
        )
        axes.set_xticks(middles, labels, fontsize=8, **turned)


def scale_times(axes: Axes, axis: str) -> None:
    """Makes an axis of seconds, ``x`` or ``y``, logarithmic, with times as people say them."""
    scaled = axes.xaxis if axis == "x" else axes.yaxis
    (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
    plain_ticks(scaled, _TIMES, duration)
    axes.tick_params(axis="both", labelsize=8)
