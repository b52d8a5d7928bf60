"""Replays of whole logs over time, as images: use and queue, and Gantt charts of any size."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator, PercentFormatter

from cluster_env.core.errors import InputError
from cluster_env.core.placement import paint, place
from tune_jobs.figures.kit.clock import Clock
from tune_jobs.figures.style import INK, headline, new_figure, style_of, styled
from tune_jobs.replaying.outcomes import AS_RECORDED
from tune_jobs.tables.frames import read_frame

LIMITS = (1.0, 2.0, 10.0, 100.0)
"""Bounded slowdowns that colors of a Gantt chart change at."""

_COLUMNS, _ROWS = 1600, 400
_IDLE = "#ffffff"
_BY_SLOWDOWN = ("#cfe3f2", "#7fb8d9", "#f2c14e", "#e07b39", "#a4262c")
_BOUND_S = 10
_OTHERS = "#d0d0d0"
_OF_STRETCH = ("begin_s", "end_s", "queue")


def draw_timeline(table: Path, *, origin: int | None = None) -> Figure:
    """Draws use and queue over time, a line for each policy; what was recorded is black.

    The CSV table has the columns policy, begin_s, end_s, window_s, utilization and queue.

    Args:
        table: the CSV file.
        origin: Unix time of the first submission, if it is known.

    Raises:
        InputError: if the table cannot be read.
    """
    rows = read_frame(table, ("policy",), (*_OF_STRETCH, "window_s", "utilization"))
    clock = Clock(rows["end_s"].max(), origin)
    rows["middle"] = clock.x((rows["begin_s"] + rows["end_s"]) / 2)
    with styled():
        figure = new_figure(6.0, width=10.0)
        use, queue = figure.subplots(2, 1, sharex=True)
        others = [name for name in rows["policy"].unique() if name != AS_RECORDED]
        for policy, own in rows.groupby("policy", sort=False):
            color, style, _ = style_of(others.index(policy)) if policy in others else (INK, "-", "")
            width = 1.2 if policy in others else 2.2
            look = {"color": color, "linestyle": style, "label": policy, "linewidth": width}
            use.plot(own["middle"], own["utilization"], **look)
            queue.plot(own["middle"], own["queue"], **look)
        last = float(rows["window_s"].iloc[0])
        inside = rows["begin_s"].min() < last < rows["end_s"].max()
        for axes in (use, queue):
            if inside:
                axes.axvline(clock.x(last), color=INK, linewidth=0.8, linestyle=":")
            axes.set_xlim(clock.x(rows["begin_s"].min()), clock.x(rows["end_s"].max()))
        use.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        use.set_ylim(0, max(1.02, 1.02 * rows["utilization"].max()))
        queue.set_ylim(0, max(1.0, 1.05 * rows["queue"].max()))
        use.set_title("Utilization, mean over resources")
        queue.set_title("Waiting jobs")
        clock.label(queue, "dotted: the last submission" if inside else "")
        queue.legend(fontsize=9, ncols=2)
        recorded = "black: as recorded; " if len(others) < rows["policy"].nunique() else ""
        headline(figure, "A log under each policy", f"{recorded}colors: simulated")
        return figure


def draw_queues(table: Path, *, by: str, origin: int | None = None) -> Figure:
    """Draws who waits over time, a panel for each policy and an area for each group.

    The CSV table has the columns policy, group, begin_s, end_s and queue.

    Args:
        table: the CSV file.
        by: what the groups are: ``user``.
        origin: Unix time of the first submission, if it is known.

    Raises:
        InputError: if the table cannot be read.
    """
    rows = read_frame(table, ("policy", "group"), _OF_STRETCH)
    clock = Clock(rows["end_s"].max(), origin)
    policies, groups = rows["policy"].unique(), list(rows["group"].unique())
    colors = [style_of(k)[0] if name != "others" else _OTHERS for k, name in enumerate(groups)]
    with styled():
        figure = new_figure(1.0 + 2.1 * len(policies), width=10.0)
        panels = figure.subplots(len(policies), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (policy, own) in zip(panels, rows.groupby("policy", sort=False), strict=True):
            table_of = own.pivot_table(index="begin_s", columns="group", values="queue")[groups]
            begin = table_of.index.to_numpy()
            edges = clock.x(np.append(begin, own["end_s"].max()))
            values = np.vstack([table_of.to_numpy(), table_of.to_numpy()[-1:]]).T
            areas = axes.stackplot(edges, values, colors=colors, step="post", linewidth=0)
            axes.set_title(policy)
        panels[0].set_xlim(edges[0], edges[-1])
        panels[0].set_ylim(bottom=0)
        clock.label(panels[-1])
        figure.legend(areas[::-1], groups[::-1], loc="outside right upper", fontsize=9, title=by)
        headline(
            figure,
            f"Waiting jobs by {by}",
            "those whose jobs wait most in the first panel have a color of their own",
        )
        return figure


def draw_gantt(
    table: Path,
    *,
    processors: int,
    policy: str,
    begin: int,
    end: int,
    why: str = "",
    origin: int | None = None,
) -> Figure:
    """Draws who ran where and when; the color of a job is its bounded slowdown.

    Jobs get the lowest free processors. All is drawn as one image of 1,600 x 400 points: white is
    idle, red has waited long. The schedule is a CSV table with ``submit``, ``start``, ``duration``,
    ``wait`` and ``processors``.

    Args:
        table: the CSV file.
        processors: of the machine.
        policy: its name, for the title.
        begin: of the stretch that is drawn, seconds since the first submission.
        end: of the stretch.
        why: why this stretch, in a few words.
        origin: Unix time of the first submission, if it is known.

    Raises:
        InputError: if the table cannot be read, or no job in it has started.
    """
    names = ("submit", "start", "duration", "wait", "processors")
    try:
        jobs = pd.read_csv(table, usecols=names, dtype=np.int64)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot draw the schedule {table}: {error}") from None
    if (jobs["start"] < 0).all():
        raise InputError(f"no job in {table} has started, so there is nothing to draw")
    start = jobs["start"] - jobs["submit"].min()
    inside = (jobs["start"] >= 0) & (start < end) & (start + jobs["duration"] > begin)
    order = start[inside].sort_values(kind="stable").index
    duration, wait, size = (jobs.loc[order, name].to_numpy() for name in names[2:])
    starts = start[order].to_numpy()
    over = (wait + duration) / np.maximum(duration, _BOUND_S)
    color = np.searchsorted(np.asarray(LIMITS), np.maximum(over, 1.0), side="left") + 1
    scale = _COLUMNS / (end - begin)
    left = np.ceil((starts - begin) * scale - 0.5).astype(np.int64)
    right = np.ceil((starts + duration - begin) * scale - 0.5).astype(np.int64)
    places = place(starts, starts + duration, size, processors)
    cells = paint(left, right, color, places, processors, (_ROWS, _COLUMNS))
    clock = Clock(end, origin)
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
            extent=(clock.x(begin), clock.x(end), 0, processors),
        )
        axes.grid(visible=False)
        _count_processors(axes, processors)
        bar = figure.colorbar(shown, ax=axes, ticks=range(1, len(_BY_SLOWDOWN) + 1), pad=0.01)
        bar.ax.set_ylim(0.5, len(_BY_SLOWDOWN) + 0.5)
        labels = ["1", *(f"to {limit:g}" for limit in LIMITS[1:]), f"above {LIMITS[-1]:g}"]
        bar.ax.set_yticklabels(labels, fontsize=9)
        bar.set_label("bounded slowdown", fontsize=10)
        bar.ax.minorticks_off()
        clock.label(axes)
        axes.set_ylabel("processors")
        headline(
            figure,
            f"Schedule {policy if policy == AS_RECORDED else f'under {policy}'}",
            f"{f'{why}; ' if why else ''}{inside.sum():,} jobs, on the lowest free "
            "processors; white: idle",
        )
        return figure


def _count_processors(axes: Axes, processors: int) -> None:
    """Ticks at quarters of a machine of one or three powers of two, else at round numbers."""
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    odd = processors
    while odd % 2 == 0:
        odd //= 2
    if odd in (1, 3) and processors % 4 == 0:
        axes.yaxis.set_major_locator(MultipleLocator(processors / 4))
