"""Replays of whole logs as images: use and queue over time, and Gantt charts of any size."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from cluster_env.core.errors import InputError
from cluster_env.core.placement import paint, place
from tune_jobs.figures.style import INK, headline, new_figure, style_of, styled
from tune_jobs.tables.frames import read_frame

LIMITS = (1.0, 2.0, 10.0, 100.0)
"""Bounded slowdowns that colors of a Gantt chart change at."""

MOST_JOBS = 200_000
"""Jobs in a Gantt chart; of a longer log it shows the beginning."""

_COLUMNS, _ROWS = 1600, 400
_IDLE = "#ffffff"
_BY_SLOWDOWN = ("#cfe3f2", "#7fb8d9", "#f2c14e", "#e07b39", "#a4262c")
_BOUND_S = 10
_UNITS = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def draw_timeline(table: Path) -> Figure:
    """Draws use and queue over time, a line for each policy.

    The CSV table has the columns policy, begin_s, end_s, window_s, utilization and queue.

    Raises:
        InputError: if the table cannot be read.
    """
    numbers = ("begin_s", "end_s", "window_s", "utilization", "queue")
    rows = read_frame(table, ("policy",), numbers)
    unit, name = time_unit(rows["end_s"].max())
    rows["middle"] = (rows["begin_s"] + rows["end_s"]) / 2 / unit
    with styled():
        figure = new_figure(6.0, width=10.0)
        use, queue = figure.subplots(2, 1, sharex=True)
        for place, (policy, own) in enumerate(rows.groupby("policy", sort=False)):
            color, style, _ = style_of(place)
            look = {"color": color, "linestyle": style, "label": policy, "linewidth": 1.2}
            use.plot(own["middle"], own["utilization"], **look)
            queue.plot(own["middle"], own["queue"], **look)
        for axes in (use, queue):
            axes.axvline(rows["window_s"].iloc[0] / unit, color=INK, linewidth=0.8, linestyle=":")
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
        use.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        use.set_ylim(top=1.02)
        use.set_title("Utilization, mean over resources")
        queue.set_title("Waiting jobs")
        queue.set_xlabel(f"{name} since the first submission; dotted: the last one")
        queue.legend(fontsize=9, ncols=2)
        return figure


def draw_gantt(table: Path, *, processors: int, policy: str) -> Figure:
    """Draws who ran where and when; the color of a job is its bounded slowdown.

    Jobs get the lowest free processors. All is drawn as one image of 1,600 x 400 points, so that
    a chart of 100,000 jobs is read as one of ten: white is idle, red has waited long.

    The schedule is a CSV table with ``submit``, ``start``, ``duration``, ``wait`` and
    ``processors``.

    Raises:
        InputError: if the table cannot be read, or no job in it has started.
    """
    names = ("submit", "start", "duration", "wait", "processors")
    try:
        jobs = pd.read_csv(table, usecols=names, dtype=np.int64)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot draw the schedule {table}: {error}") from None
    started = jobs[jobs["start"] >= 0].sort_values("start", kind="stable")
    if started.empty:
        raise InputError(f"no job in {table} has started, so there is nothing to draw")
    first = started.head(MOST_JOBS)
    duration = first["duration"].to_numpy()
    start = first["start"].to_numpy() - int(jobs["submit"].min())
    end = start + duration
    over = (first["wait"].to_numpy() + duration) / np.maximum(duration, _BOUND_S)
    color = np.searchsorted(np.asarray(LIMITS), np.maximum(over, 1.0), side="left") + 1
    size = first["processors"].to_numpy()
    left = np.ceil(start * (_COLUMNS / end.max()) - 0.5).astype(np.int64)
    right = np.ceil(end * (_COLUMNS / end.max()) - 0.5).astype(np.int64)
    places = place(start, end, size, processors)
    cells = paint(left, right, color, places, processors, (_ROWS, _COLUMNS))
    unit, name = time_unit(float(end.max()))
    with styled():
        figure = new_figure(4.6, width=10.0)
        axes = figure.subplots()
        shown = axes.imshow(
            cells,
            cmap=ListedColormap([_IDLE, *_BY_SLOWDOWN]),
            norm=BoundaryNorm(np.arange(len(_BY_SLOWDOWN) + 2) - 0.5, 1 + len(_BY_SLOWDOWN)),
            aspect="auto",
            origin="lower",
            interpolation="nearest",
            extent=(0, float(end.max()) / unit, 0, processors),
        )
        axes.grid(visible=False)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        bar = figure.colorbar(shown, ax=axes, ticks=range(1, len(_BY_SLOWDOWN) + 1), pad=0.01)
        bar.ax.set_ylim(0.5, len(_BY_SLOWDOWN) + 0.5)
        labels = ["1", *(f"to {limit:g}" for limit in LIMITS[1:]), f"above {LIMITS[-1]:g}"]
        bar.ax.set_yticklabels(labels, fontsize=9)
        bar.set_label("bounded slowdown", fontsize=10)
        bar.ax.minorticks_off()
        axes.set_xlabel(f"{name} since the first submission")
        axes.set_ylabel("processors")
        cut = "" if len(first) == len(started) else f", the first {len(first):,} of them"
        headline(
            figure,
            f"Schedule under {policy}",
            f"{len(started):,} jobs{cut}; white: idle processors; each job is drawn on the "
            "lowest free processors",
        )
        return figure


def time_unit(seconds: float) -> tuple[float, str]:
    """The largest unit of time of which there are at least two."""
    return next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
