"""The same jobs under the best rule and under a learned policy: who ran when, who waited."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cluster_env.core.placement import paint, place
from cluster_env.evaluation import get_metric
from tune_jobs.figures.style import headline, new_figure, style_of, styled
from tune_jobs.measuring.wording import described, on_jobs, spec_of_row
from tune_jobs.tables.columns import column
from tune_jobs.tables.frames import read_frame

LIMITS = (1.0, 2.0, 5.0, 20.0)
"""Slowdowns that the colors of jobs change at."""

_NUMBERS = ("submit", "start", "duration", "units", "slowdown", "mean", "machine")

_COLORS = ("#ffffff", "#cfe3f2", "#7fb8d9", "#f2c14e", "#e07b39", "#a4262c")

_COLUMNS = 1600


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    texts = ("policy", "learned", "metric", "jobsets", "of_rules", "place", "better")
    rows = read_frame(table, texts, _NUMBERS)
    policies = [(str(name), own) for name, own in rows.groupby("policy", sort=False)]
    end = float((rows["start"] + rows["duration"]).max())
    first, metric = rows.iloc[0], get_metric(rows["metric"].iloc[0])
    worded = "lower" if not metric.higher_is_better else "higher"
    with styled():
        figure = new_figure(8.0, width=10.0)
        *gantts, queue = figure.subplots(3, 1, sharex=True, height_ratios=[3, 3, 2])
        for k, (axes, (name, own)) in enumerate(zip(gantts, policies, strict=True)):
            color, style, _ = style_of(k)
            _draw_gantt(axes, own, end)
            axes.set_title(f"{name}: {_numbers(own)}", color=color)
            axes.set_ylabel("units of resource 1")
            queue.plot(*_queue(own, int(end)), color=color, linestyle=style, label=name)
        queue.set_title("Waiting jobs")
        queue.yaxis.set_major_locator(MaxNLocator(integer=True))
        queue.set_ylim(bottom=0)
        queue.set_xlim(0, end)
        queue.set_xlabel(f"time ({spec_of_row(first).presentation.time_unit})")
        queue.legend(fontsize=9, ncols=2)
        labels = ["1, starts at once", *(f"up to {limit:g}" for limit in LIMITS[1:])]
        figure.legend(
            [Patch(facecolor=color, edgecolor="#888888") for color in _COLORS],
            ["idle", *labels, f"above {LIMITS[-1]:g}"],
            title="a block is a job, and its color the slowdown: time in the system over run time",
            loc="outside lower center",
            ncols=len(_COLORS),
            fontsize=9,
        )
        headline(
            figure,
            f"The same jobs under two schedulers, {on_jobs(first)}",
            f"{first['policy']} is {first['of_rules']} over {first['jobsets']} "
            f"jobsets. {policies[-1][0]} has a {worded} {metric.name} on {first['better']} of "
            f"them. Shown is jobset {first['place']}, whose difference is closest to the mean "
            f"difference; {described(first)}",
        )
    return figure


def _numbers(jobs: pd.DataFrame) -> str:
    """The mean of a policy on the jobset, and what it was bought with."""
    row, waiting = jobs.iloc[0], int((jobs["start"] < 0).sum())
    spec = spec_of_row(row)
    side = (
        f"{column(name).title} {column(name).write(float(row[name]), spec.presentation.time)}"
        for name in spec.side_metrics
    )
    left = [f"{waiting:,} jobs never start"] if waiting else []
    return ", ".join((f"{get_metric(row['metric']).label} {row['mean']:.2f}", *side, *left))


def _draw_gantt(axes: Axes, jobs: pd.DataFrame, end: float) -> None:
    """Who held the units of the first resource; jobs get the lowest free ones."""
    started = jobs[jobs["start"] >= 0].sort_values("start", kind="stable")
    start, duration, units = (
        started[name].to_numpy().astype(np.int64) for name in ("start", "duration", "units")
    )
    color = np.searchsorted(np.asarray(LIMITS), started["slowdown"].to_numpy()) + 1
    machine = int(jobs["machine"].iloc[0])
    last = int((start + duration).max())
    shape, scale = (machine, round(_COLUMNS * last / end)), _COLUMNS / end
    left, right = (np.rint(at * scale).astype(np.int64) for at in (start, start + duration))
    axes.imshow(
        paint(left, right, color, place(start, start + duration, units, machine), machine, shape),
        cmap=ListedColormap(_COLORS),
        norm=BoundaryNorm(np.arange(len(_COLORS) + 1) - 0.5, len(_COLORS)),
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0, last, 0, machine),
    )
    axes.grid(visible=False)


def _queue(jobs: pd.DataFrame, end: int) -> Sequence[NDArray[np.int64]]:
    """Steps, and how many jobs wait in each."""
    steps = np.arange(end)
    submit, start = np.sort(jobs["submit"]), np.sort(jobs.loc[jobs["start"] >= 0, "start"])
    waiting = np.searchsorted(submit, steps, "right") - np.searchsorted(start, steps, "right")
    return steps, waiting
