"""Replays of whole logs as images: use and queue over time, and Gantt charts of any size."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from tune_jobs.figures.processors import lay_out
from tune_jobs.figures.style import INK, headline, new_figure, save, styled
from tune_jobs.terminal.tables import number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMITS = (1.0, 2.0, 10.0, 100.0)
"""Bounded slowdowns that colors of a Gantt chart change at."""

MOST_JOBS = 200_000
"""Jobs in a Gantt chart; of a longer log it shows the beginning."""

_COLUMNS, _ROWS = 1600, 400
_IDLE = "#ffffff"
_BY_SLOWDOWN = ("#cfe3f2", "#7fb8d9", "#f2c14e", "#e07b39", "#a4262c")
_LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f3b08")
_BOUND_S = 10
_UNITS = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def draw_timeline(table: Path, image: Path) -> None:
    """Draws use and queue over time, a line for each policy.

    Args:
        table: CSV with the columns policy, begin_s, end_s, window_s, utilization and queue.
        image: PNG.

    Raises:
        InputError: if the table cannot be read.
    """
    rows = read_table(table, ("policy", "begin_s", "end_s", "window_s", "utilization", "queue"))
    unit, name = time_unit(max(number(row, "end_s") for row in rows))
    arrivals = number(rows[0], "window_s") / unit
    with styled():
        figure = new_figure(6.0, width=10.0)
        use, queue = figure.subplots(2, 1, sharex=True)
        for k, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
            own = [row for row in rows if row["policy"] == policy]
            middle = [(number(r, "begin_s") + number(r, "end_s")) / 2 / unit for r in own]
            look = {"color": _LINES[k % len(_LINES)], "label": policy, "linewidth": 1.2}
            if k >= len(_LINES):
                look["linestyle"] = "--"
            use.plot(middle, [number(r, "utilization") for r in own], **look)
            queue.plot(middle, [number(r, "queue") for r in own], **look)
        for axes in (use, queue):
            axes.axvline(arrivals, color=INK, linewidth=0.8, linestyle=":")
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
        use.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        use.set_ylim(top=1.02)
        use.set_title("Machine in use, mean over resources")
        queue.set_title("Jobs that wait")
        queue.set_xlabel(f"{name} since the first submission; dotted: the last one")
        queue.legend(fontsize=9, ncols=2)
        save(figure, image)


def draw_gantt(table: Path, image: Path, processors: int, policy: str) -> None:
    """Draws who ran where and when; the color of a job is its bounded slowdown.

    Jobs get the lowest free processors. All is drawn as one image of 1,600 x 400 points, so that
    a chart of 100,000 jobs is read as one of ten: white is idle, red has waited long.

    Args:
        table: schedule, CSV with ``submit``, ``start``, ``duration``, ``wait``, ``processors``.
        image: PNG.
        processors: of the machine.
        policy: its name, for the title.

    Raises:
        InputError: if the table cannot be read, or no job in it has started.
    """
    columns = _read_columns(table)
    started = np.flatnonzero(columns["start"] >= 0)
    if not started.size:
        raise InputError(f"no job in {table} has started, so there is nothing to draw")
    first = started[np.argsort(columns["start"][started], kind="stable")][:MOST_JOBS]
    start = columns["start"][first] - int(columns["submit"].min())
    end = start + columns["duration"][first]
    over = columns["wait"][first] + columns["duration"][first]
    slowdown = np.maximum(over / np.maximum(columns["duration"][first], _BOUND_S), 1.0)
    color = np.searchsorted(np.asarray(LIMITS), slowdown, side="left") + 1
    cells = lay_out(start, end, columns["processors"][first], color, processors, (_ROWS, _COLUMNS))
    unit, name = time_unit(float(end.max()))
    with styled():
        figure = new_figure(4.6, width=10.0)
        axes = figure.subplots()
        _paint(figure, axes, cells, float(end.max()) / unit, processors)
        axes.set_xlabel(f"{name} since the first submission")
        axes.set_ylabel("processors")
        shown = "" if first.size == started.size else f", the first {first.size:,} of them"
        headline(
            figure,
            f"Who ran when under {policy}",
            f"{started.size:,} jobs{shown}; white is idle, each job has the lowest free processors",
        )
        save(figure, image)


def _paint(
    figure: "Figure", axes: "Axes", cells: NDArray[np.uint8], span: float, processors: int
) -> None:
    colors = [_IDLE, *_BY_SLOWDOWN]
    shown = axes.imshow(
        cells,
        cmap=ListedColormap(colors),
        norm=BoundaryNorm([k - 0.5 for k in range(len(colors) + 1)], len(colors)),
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0, span, 0, processors),
    )
    axes.grid(visible=False)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    bar = figure.colorbar(shown, ax=axes, ticks=range(1, len(_BY_SLOWDOWN) + 1), pad=0.01)
    bar.ax.set_ylim(0.5, len(_BY_SLOWDOWN) + 0.5)
    labels = ["1", *(f"to {limit:g}" for limit in LIMITS[1:]), f"above {LIMITS[-1]:g}"]
    bar.ax.set_yticklabels(labels, fontsize=9)
    bar.set_label("bounded slowdown", fontsize=10)
    bar.ax.minorticks_off()


def _read_columns(table: Path) -> dict[str, NDArray[np.int64]]:
    names = ("submit", "start", "duration", "wait", "processors")
    try:
        with table.open() as file:
            head = file.readline().rstrip("\n").split(",")
            places = [head.index(name) for name in names]
            values = np.loadtxt(
                file, delimiter=",", usecols=places, dtype=np.int64, ndmin=2, quotechar='"'
            )
    except (OSError, ValueError) as error:
        raise InputError(f"cannot draw the schedule {table}: {error}") from None
    return dict(zip(names, values.T, strict=True))


def time_unit(seconds: float) -> tuple[float, str]:
    """The largest unit of time of which there are at least two."""
    return next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
