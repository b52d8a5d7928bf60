"""A job log as an image: weeks, queue, times, sizes, estimates, hours of the day."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from cluster_env.core.durations import duration
from tune_jobs.figures.style import MUTED, new_figure, save, styled
from tune_jobs.terminal.tables import Cells, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_TIMES = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_MOST_LABELS = 8


def draw_log(table: Path, image: Path) -> None:
    """Draws what `tune_jobs.replaying.description.points` collected in a CSV file.

    Raises:
        InputError: if the file cannot be read.
    """
    rows = read_table(table, ("panel", "series", "x", "label", "y"))
    with styled():
        figure = new_figure(8.4, width=10.0)
        axes = figure.subplots(3, 2).ravel()
        _lines(axes[0], rows, "weeks", "Work that came, and use, by week")
        _lines(axes[1], rows, "queue", "Jobs that wait, mean by week")
        _times(axes[2], rows)
        _bars(axes[3], rows, "sizes", "Processors of a job")
        _steps(axes[4], rows, "estimates", "Run time over estimate", 0.05)
        _steps(axes[5], rows, "hours", "Hour of the day of submission", 1.0)
        for k in (0, 3, 4, 5):
            axes[k].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axes[k].set_ylim(bottom=0)
        axes[2].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes[1].set_ylim(bottom=0)
        axes[4].set_xlabel("above 1: the job outlived its estimate", color=MUTED, fontsize=9)
        save(figure, image)


def series_of(rows: Sequence[Cells], panel: str) -> dict[str, list[Cells]]:
    """The rows of a panel by the names of their series."""
    found: dict[str, list[Cells]] = {}
    for row in rows:
        if row["panel"] == panel:
            found.setdefault(row["series"], []).append(row)
    return found


def xy(rows: Sequence[Cells]) -> tuple[list[float], list[float]]:
    """The columns x and y."""
    return [number(row, "x") for row in rows], [number(row, "y") for row in rows]


def _lines(axes: "Axes", rows: Sequence[Cells], panel: str, title: str) -> None:
    found = series_of(rows, panel)
    for color, (name, part) in zip(_COLORS, found.items(), strict=False):
        x, y = xy(part)
        # A week lasts until the next begins.
        axes.plot([*x, x[-1] + 1], [*y, y[-1]], drawstyle="steps-post", color=color, label=name)
    labels = [row["label"] for row in next(iter(found.values()))]
    step = -(-len(labels) // _MOST_LABELS)
    axes.xaxis.set_major_locator(FixedLocator([float(k) for k in range(0, len(labels), step)]))
    axes.set_xticklabels(labels[::step], rotation=30, ha="right", fontsize=8)
    axes.set_title(title)
    if labels[0] == "1":
        axes.set_xlabel("week", fontsize=9)
    if len(found) > 1:
        axes.legend(fontsize=8, ncols=2)


def _times(axes: "Axes", rows: Sequence[Cells]) -> None:
    for color, (name, part) in zip(_COLORS, series_of(rows, "times").items(), strict=False):
        axes.plot(*xy(part), color=color, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([float(time) for time in _TIMES]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title("Share of jobs at or below")
    axes.legend(fontsize=8)


def _bars(axes: "Axes", rows: Sequence[Cells], panel: str, title: str) -> None:
    found = series_of(rows, panel)
    for k, (color, (name, part)) in enumerate(zip(_COLORS, found.items(), strict=False)):
        x, y = xy(part)
        axes.bar([at + 0.4 * k for at in x], y, 0.4, align="edge", color=color, label=name)
    labels = [row["label"].replace(" to ", "-") for row in next(iter(found.values()))]
    axes.xaxis.set_major_locator(FixedLocator([k + 0.4 for k in range(len(labels))]))
    axes.set_xticklabels(labels, rotation=30, ha="right", fontsize=8)
    axes.set_title(title)
    axes.legend(fontsize=8)


def _steps(axes: "Axes", rows: Sequence[Cells], panel: str, title: str, width: float) -> None:
    for color, part in zip(_COLORS, series_of(rows, panel).values(), strict=False):
        x, y = xy(part)
        axes.bar(x, y, 0.92 * width, align="edge", color=color)
    axes.set_title(title)
