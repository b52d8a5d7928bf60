"""Curves of meta-training: returns before and after adaptation, and entropy, by iteration."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from meta.maml.options import MAMLOptions
from tune_jobs.adapting.sources import method_of, trained_on
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.figures.adaptation_data import color_and_style
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import (
    MUTED,
    count_iterations,
    headline,
    label_ends,
    new_figure,
    styled,
)
from tune_jobs.runs.directory import open_run
from tune_jobs.runs.history import KEY
from tune_jobs.terminal.tables import Cells, Row, Value, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "method",
    "trained_on",
    "meta_seed",
    "iteration",
    "before",
    "after",
    "entropy",
    "collapsed",
)

_METRICS = {
    "before": "meta/return_before",
    "after": "meta/return_after",
    "entropy": "train/entropy",
    "collapsed": "meta/collapsed",
}
_HEIGHT = 3.2
_PARTS = 25  # of a run; a point of a curve is the mean over one of them


def collect(request: FigureRequest) -> list[Row]:
    """Reads the metrics of meta-training runs.

    Returns:
        One row for each run and iteration: ``before`` and ``after``, the mean return over the
        iteration's tasks before and after the inner steps, over the baseline's absolute return;
        ``entropy`` of the adapted policies, in nats; ``collapsed``, whether the run went back.

    Raises:
        InputError: if no run is named, or one is not of meta-training or has recorded nothing.
    """
    if not request.runs:
        raise InputError("meta-curves need runs: give them with --runs, for instance runs/MY_RUN")
    rows: list[Row] = []
    for path in find_runs(request.runs):
        run = open_run(path)
        config = run.config()
        if not isinstance(config.training, MAMLOptions):
            raise InputError(
                f"{path} is no run of the algorithm maml; metasched figure deeprm-fig6 draws its "
                f"curves"
            )
        history = run.history.rows()
        if not history:
            raise InputError(f"{path} has recorded no iteration yet")
        head: dict[str, Value] = {
            "method": method_of(config),
            "trained_on": trained_on(config),
            "meta_seed": config.seed,
            "run": path.resolve().name,
        }
        rows += [
            {
                **head,
                "iteration": one[KEY],
                **{name: one.get(metric, math.nan) for name, metric in _METRICS.items()},
            }
            for one in history
        ]
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, COLUMNS)
    families = list(dict.fromkeys(row["trained_on"] for row in rows))
    with styled():
        figure = new_figure(1.1 + _HEIGHT * len(families))
        panels = figure.subplots(len(families), 2, squeeze=False)
        headline(
            figure,
            "Meta-training",
            f"training tasks, means over {_PARTS} parts of a run; lines: mean over training seeds, "
            f"bands: all of them; dashed: before the inner steps; crosses: a run that collapsed "
            f"and went back",
        )
        for (left, right), family in zip(panels, families, strict=True):
            mine = [row for row in rows if row["trained_on"] == family]
            left.set_title(f"trained on {family}")
            left.set_ylabel("return over the baseline's")
            right.set_ylabel("entropy after adaptation (nats)")
            _draw(left, mine, (("before", (0, (4, 2))), ("after", "-")))
            _draw(right, mine, (("entropy", "-"),))
    return figure


def _draw(axes: "Axes", rows: Sequence[Cells], curves: Sequence[tuple[str, object]]) -> None:
    """The curves of every method."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    labels = []
    for method in methods:
        color, _ = color_and_style(method, methods)
        mine = [row for row in rows if row["method"] == method]
        for column, style in curves:
            x, values = _curve(mine, column)
            if np.isnan(values).all():
                continue
            mean = values.mean(axis=0)
            axes.plot(x, mean, color=color, linestyle=style, linewidth=1.7)
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0)
            if column != "before":
                labels.append((float(mean[-1]), method, color))
        for at in (number(row, "iteration") for row in mine if row["collapsed"] not in ("", "0.0")):
            axes.plot([at], [0.02], "x", color=color, transform=axes.get_xaxis_transform())
    count_iterations(axes)
    axes.set_xlim(0, max(number(row, "iteration") for row in rows))
    if labels:
        label_ends(axes, labels, size=8.5)
    else:
        axes.annotate("not recorded", (0.5, 0.5), xycoords="axes fraction", color=MUTED)


def _curve(rows: Sequence[Cells], column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Iterations, float64 ``(parts,)``, and a column's means, ``(seeds, parts)``.

    Runs of different lengths are cut to the shortest.
    """
    runs = [
        [row for row in rows if row["run"] == run]
        for run in dict.fromkeys(row["run"] for row in rows)
    ]
    length = min(map(len, runs))
    parts = np.array_split(np.arange(length), min(_PARTS, length))
    values = np.array([[number(row, column) for row in run[:length]] for run in runs])
    at = np.array([number(row, "iteration") for row in runs[0][:length]])
    means = np.array([values[:, part].mean(axis=1) for part in parts]).T
    return np.array([at[part].mean() for part in parts]), means
