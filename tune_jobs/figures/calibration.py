"""Simulated against recorded waits as an image: by week, by class, in all, job by job."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from cluster_env.core.durations import duration
from tune_jobs.figures.logs import series_of, xy
from tune_jobs.figures.replays import time_unit
from tune_jobs.figures.style import INK, MUTED, new_figure, save, styled
from tune_jobs.terminal.tables import Cells, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = (INK, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_TIMES = (1, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_MOST_LABELS = 8


def draw_calibration(table: Path, image: Path) -> None:
    """Draws what `tune_jobs.replaying.fidelity.points` collected in a CSV file.

    Raises:
        InputError: if the file cannot be read.
    """
    rows = read_table(table, ("panel", "series", "x", "label", "y"))
    with styled():
        figure = new_figure(7.6, width=10.0)
        weeks, classes, waits, jobs = figure.subplots(2, 2).ravel()
        _weeks(weeks, series_of(rows, "weeks"))
        _classes(classes, series_of(rows, "classes"))
        _waits(waits, series_of(rows, "waits"))
        _jobs(jobs, series_of(rows, "jobs"))
        save(figure, image)


def _weeks(axes: "Axes", found: dict[str, list[Cells]]) -> None:
    unit, of = _unit_of(found)
    for color, (name, part) in zip(_COLORS, found.items(), strict=False):
        x, y = xy(part)
        steps = [value / unit for value in (*y, y[-1])]
        (line,) = axes.plot([*x, x[-1] + 1], steps, drawstyle="steps-post", color=color, label=name)
        line.set_linewidth(3 if name == "recorded" else 1.5)
    labels = [row["label"] for row in found["recorded"]]
    step = -(-len(labels) // _MOST_LABELS)
    axes.xaxis.set_major_locator(FixedLocator([float(k) for k in range(0, len(labels), step)]))
    axes.set_xticklabels(labels[::step], rotation=30, ha="right", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.set_title(f"Mean wait by week of arrival, {of}")
    axes.legend(fontsize=8)


def _classes(axes: "Axes", found: dict[str, list[Cells]]) -> None:
    width = 0.8 / len(found)
    unit, of = _unit_of(found)
    for k, (color, part) in enumerate(zip(_COLORS, found.values(), strict=False)):
        x, y = xy(part)
        bars = [value / unit for value in y]
        axes.barh([at + k * width for at in x], bars, width, align="edge", color=color)
    labels = [row["label"] for row in found["recorded"]]
    axes.yaxis.set_major_locator(FixedLocator([k + 0.4 for k in range(len(labels))]))
    axes.set_yticklabels(labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_title(f"Mean wait by class, {of}")


def _unit_of(found: dict[str, list[Cells]]) -> tuple[float, str]:
    """The unit that suits the longest of some waits."""
    return time_unit(max(max(xy(part)[1]) for part in found.values()))


def _waits(axes: "Axes", found: dict[str, list[Cells]]) -> None:
    for color, (name, part) in zip(_COLORS, found.items(), strict=False):
        x, y = xy(part)
        width = 3 if name == "recorded" else 1.5
        axes.plot(np.maximum(x, 1), y, color=color, label=name, linewidth=width)
    _time_scale(axes, "x")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(0, 1.02)
    axes.set_title("Share of jobs that wait at most")


def _jobs(axes: "Axes", found: dict[str, list[Cells]]) -> None:
    ((name, part),) = found.items()
    x, y = (np.maximum(values, 1) for values in xy(part))
    axes.scatter(x, y, s=5, color=_COLORS[1], alpha=0.35, linewidths=0)
    ends = [1, float(max(x.max(), y.max(), 2))]
    axes.plot(ends, ends, color=MUTED, linewidth=0.8)
    for which in ("x", "y"):
        _time_scale(axes, which)
    axes.set_xlabel("recorded wait; on the line both are equal", color=MUTED, fontsize=9)
    axes.set_title(f"Jobs: simulated wait, {name}")


def _time_scale(axes: "Axes", which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis.set_major_locator(FixedLocator([float(time) for time in _TIMES]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.tick_params(axis="both", labelsize=8)
