"""What meta-training recorded: returns before and after adaptation, and entropy."""

import math
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tune_jobs.adapting.sources import method_of, trained_on
from tune_jobs.figures.adaptation_data import color_and_style
from tune_jobs.figures.kit.curves import Style, count_iterations, draw_curves, seeds_curve
from tune_jobs.figures.style import MUTED, headline, label_ends, new_figure, styled
from tune_jobs.recipes.learning_curves import read_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.runs.history import KEY
from tune_jobs.tables.frames import Row, read_frame

TEXTS = ("method", "trained_on", "run")
RECORDED = {
    "before": "meta/return_before",
    "after": "meta/return_after",
    "entropy": "train/entropy",
    "collapsed": "meta/collapsed",
}

_HEIGHT = 3.2  # of a panel of curves, inches
_PARTS = 25  # of a run; a point of a curve is the mean over one of them


def collect_curves(request: FigureRequest) -> list[Row]:
    """Reads the metrics of meta-training runs.

    Returns:
        One row for each run and iteration: ``before`` and ``after``, the mean return over the
        iteration's tasks before and after the inner steps, over the baseline's absolute return;
        ``entropy`` of the adapted policies, in nats; ``collapsed``, whether the run went back.

    Raises:
        InputError: if no run is named, or one is not of meta-training or has recorded nothing.
    """
    return [
        {
            "method": method_of(run.config),
            "trained_on": trained_on(run.config),
            "meta_seed": run.config.seed,
            "run": run.path.resolve().name,
            "iteration": one[KEY],
            **{name: one.get(metric, math.nan) for name, metric in RECORDED.items()},
        }
        for run in read_runs(request, of_meta=True)
        for one in run.rows
    ]


def draw_curves_of_runs(table: Path) -> Figure:
    """Draws the CSV file of `collect_curves`."""
    rows = read_frame(table, TEXTS, ("iteration", *RECORDED))
    families = rows.groupby("trained_on", sort=False)
    with styled():
        figure = new_figure(1.1 + _HEIGHT * families.ngroups)
        panels = figure.subplots(families.ngroups, 2, squeeze=False)
        headline(figure, "Meta-training", _explained(rows))
        for (left, right), (family, mine) in zip(panels, families, strict=True):
            left.set_title(f"trained on {family}")
            left.set_ylabel("return / baseline")
            right.set_ylabel("entropy after adaptation (nats)")
            # Returns that are costs are below 0, and so is the baseline's over its absolute value.
            left.axhline(-1 if mine["after"].mean() < 0 else 1, color=MUTED, zorder=1)
            _draw_panel(left, mine, {"before": (0, (4, 2)), "after": "-"})
            _draw_panel(right, mine, {"entropy": "-"})
    return figure


def _explained(rows: pd.DataFrame) -> str:
    """What the curves are, as far as it is there."""
    runs = rows.groupby(["trained_on", "method"])["run"].nunique()
    long, several = rows["iteration"].max() > _PARTS, runs.max() > 1
    parts = [
        "training tasks" + (f", means over {_PARTS} parts of a run" if long else ""),
        "lines: mean over training seeds, bands: range over seeds" if several else "one seed",
        "dashed: before the inner steps",
        "gray line: the baseline",
        "crosses: a run collapsed and returned to an earlier state"
        if (rows["collapsed"] > 0).any()
        else "",
        "K: inner steps",
        "FOMAML: MAML without second derivatives"
        if rows["method"].str.contains("FOMAML").any()
        else "",
    ]
    return "; ".join(filter(None, parts))


def _draw_panel(axes: Axes, rows: pd.DataFrame, columns: dict[str, Style]) -> None:
    """The curves of every method, and a cross below where a run collapsed."""
    ends = []
    for method, mine in rows.groupby("method", sort=False):
        color, _ = color_and_style(method, rows["method"])
        ends += draw_curves(
            axes,
            [
                seeds_curve(
                    mine,
                    column,
                    seed="run",
                    parts=_PARTS,
                    name="" if column == "before" else method,
                    color=color,
                    style=style,
                )
                for column, style in columns.items()
            ],
        )
        for at in mine["iteration"][mine["collapsed"] > 0]:
            axes.plot([at], [0.02], "x", color=color, transform=axes.get_xaxis_transform())
    count_iterations(axes, rows["iteration"].max())
    if ends:
        label_ends(axes, ends, size=8.5)
    else:
        axes.annotate("not recorded", (0.5, 0.5), xycoords="axes fraction", color=MUTED)
