"""Job logs as images: what a log holds, and simulated against recorded waits."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tune_jobs.figures.kit.bars import draw_groups, scale_times
from tune_jobs.figures.kit.clock import time_unit
from tune_jobs.figures.style import INK, MUTED, PALETTE, new_figure, style_of, styled
from tune_jobs.tables.frames import read_frame

_RECORDED = "recorded"
_MOST_LABELS = 8
_UPRIGHT = 3  # letters of labels that stand side by side
_TICKS = 8.5  # size of the letters at ticks

Series = list[tuple[str, str, pd.DataFrame]]  # name, color and rows


def draw_log(table: Path) -> Figure:
    """Draws what `tune_jobs.replaying.description.points` collected in a CSV file.

    Raises:
        InputError: if the file cannot be read.
    """
    rows = _read(table)
    with styled():
        figure = new_figure(8.4, width=10.0)
        weeks, queue, times, sizes, estimates, hours = figure.subplots(3, 2).ravel()
        _draw_weeks(weeks, _series(rows, "weeks"), "Load and utilization, by week")
        _draw_weeks(queue, _series(rows, "queue"), "Mean number of waiting jobs, by week")
        _draw_times(times, _series(rows, "times"), "Share of jobs up to this time")
        sizes_of = _series(rows, "sizes")
        for _, _, part in sizes_of:
            part["label"] = part["label"].str.replace(" to ", "-")
        draw_groups(sizes, sizes_of)
        sizes.set_title("Processors of a job")
        sizes.legend(fontsize=8)
        for axes, panel, title, width in (
            (estimates, "estimates", "Run time over estimate", 0.05),
            (hours, "hours", "Hour of the day of submission", 1.0),
        ):
            for _, color, part in _series(rows, panel):
                axes.bar(part["x"], part["y"], 0.92 * width, align="edge", color=color)
            axes.set_title(title)
        for axes in (weeks, times, sizes, estimates, hours):
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        for axes in (weeks, queue, sizes, estimates, hours):
            axes.set_ylim(bottom=0)
        for axes in figure.axes:
            axes.tick_params(labelsize=_TICKS)
        hours.set_xticks(range(0, 25, 6))
        estimates.set_xlabel(
            "above 1: the job ran longer than its estimate", color=MUTED, fontsize=9
        )
        return figure


def draw_calibration(table: Path) -> Figure:
    """Draws what `tune_jobs.replaying.fidelity.points` collected in a CSV file.

    Raises:
        InputError: if the file cannot be read.
    """
    rows = _read(table)
    units = {}
    for panel in ("weeks", "classes"):
        shown = rows["panel"] == panel
        unit, units[panel] = time_unit(rows.loc[shown, "y"].max())
        rows.loc[shown, "y"] /= unit
    with styled():
        figure = new_figure(7.6, width=10.0)
        weeks, classes, waits, jobs = figure.subplots(2, 2).ravel()
        title = f"Mean wait by week of arrival, {units['weeks']}"
        _draw_weeks(weeks, _series(rows, "weeks"), title)
        weeks.set_ylim(bottom=0)
        draw_groups(classes, _series(rows, "classes"), horizontal=True)
        classes.set_title(f"Mean wait by class, {units['classes']}")
        _draw_times(waits, _series(rows, "waits"), "Share of jobs that wait at most as long")
        waits.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        waits.set_ylim(0, 1.02)
        ((name, _, part),) = _series(rows, "jobs")
        x, y = np.maximum(part["x"], 1), np.maximum(part["y"], 1)
        jobs.scatter(x, y, s=5, color=PALETTE[0], alpha=0.35, linewidths=0)
        ends = [1, max(x.max(), y.max(), 2)]
        jobs.plot(ends, ends, color=MUTED, linewidth=0.8)
        scale_times(jobs, "x")
        scale_times(jobs, "y")
        jobs.set_xlabel(
            "recorded wait; on the line both are equal; 1 s: or less", color=MUTED, fontsize=9
        )
        jobs.set_title(f"Jobs: simulated wait, {name}")
        for axes in figure.axes:
            axes.tick_params(labelsize=_TICKS)
        return figure


def _read(table: Path) -> pd.DataFrame:
    return read_frame(table, ("panel", "series", "label"), ("x", "y"))


def _series(rows: pd.DataFrame, panel: str) -> Series:
    """The lines, or kinds of bars, of a panel; what is recorded is black."""
    parts = dict(list(rows[rows["panel"] == panel].groupby("series", sort=False)))
    others = [name for name in parts if name != _RECORDED]
    colors = {name: style_of(place)[0] for place, name in enumerate(others)} | {_RECORDED: INK}
    return [(str(name), colors[name], part.copy()) for name, part in parts.items()]


def _draw_weeks(axes: Axes, series: Series, title: str) -> None:
    """A line of steps for each series, as a week lasts until the next begins."""
    recorded = any(name == _RECORDED for name, _, _ in series)
    for name, color, part in series:
        x, y = part["x"].to_numpy(), part["y"].to_numpy()
        width = 3.0 if name == _RECORDED else 1.5
        look: dict[str, Any] = {"color": color, "label": name, "linewidth": width}
        axes.plot([*x, x[-1] + 1], [*y, y[-1]], drawstyle="steps-post", **look)
    labels = list(series[0][2]["label"])
    step = -(-len(labels) // _MOST_LABELS)
    places = range(0, len(labels), step)
    turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if len(labels[0]) > _UPRIGHT else {}
    axes.set_xticks(places, labels[::step], **turned)
    axes.set_title(title)
    if labels[0] == "1":
        axes.set_xlabel("week", fontsize=9)
    if len(series) > 1:
        axes.legend(fontsize=8, ncols=1 if recorded else 2)


def _draw_times(axes: Axes, series: Series, title: str) -> None:
    """A line for each series, along times; what is below a second stands at the left edge."""
    for name, color, part in series:
        width = 3.0 if name == _RECORDED else 1.5
        # A logarithmic axis has no 0: the line begins with the share that is below 1 s.
        below, rest = part[part["x"] < 1], part[part["x"] >= 1]
        x, y = [1.0, *rest["x"]], [below["y"].max() if len(below) else 0.0, *rest["y"]]
        axes.plot(x, y, color=color, label=name, linewidth=width)
    scale_times(axes, "x")
    axes.set_xlim(left=1)
    axes.set_title(title)
    axes.legend(fontsize=8)
