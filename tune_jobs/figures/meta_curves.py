"""What meta-training recorded: returns before and after adaptation, entropy, and inner rates."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from cluster_env.core.errors import InputError
from meta.adaptation import load_meta_policy
from rllib_configs.schema import ExperimentConfig
from tune_jobs.adapting.sources import method_of, trained_on
from tune_jobs.figures.adaptation_data import color_and_style
from tune_jobs.figures.kit.curves import Style, count_iterations, draw_curves, seeds_curve
from tune_jobs.figures.kit.dots import name_lines
from tune_jobs.figures.style import MUTED, headline, label_ends, new_figure, styled
from tune_jobs.recipes.learning_curves import read_runs, require_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.runs.history import KEY
from tune_jobs.tables.frames import Row, Value, read_frame

TEXTS = ("method", "trained_on", "run")
RECORDED = {
    "before": "meta/return_before",
    "after": "meta/return_after",
    "entropy": "train/entropy",
    "collapsed": "meta/collapsed",
}
OF_RATES = ("place", "rate", "start")

_HEIGHT = 3.2  # of a panel of curves, inches
_PARTS = 25  # of a run; a point of a curve is the mean over one of them
_BLOCK_HEIGHT = 0.27  # of inner rates, inches
_CLOSE = 30.0  # rates within this factor have room for more ticks


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
            **_head(run.path, run.config),
            "iteration": one[KEY],
            **{name: one.get(metric, math.nan) for name, metric in RECORDED.items()},
        }
        for run in read_runs(request, of_meta=True)
        for one in run.rows
    ]


def _head(run: Path, config: ExperimentConfig) -> dict[str, Value]:
    """Columns that say which run a row is of."""
    return {
        "method": method_of(config),
        "trained_on": trained_on(config),
        "meta_seed": config.seed,
        "run": run.resolve().name,
    }


def draw_curves_of_runs(table: Path) -> Figure:
    """Draws the CSV file of `collect_curves`."""
    rows = read_frame(table, TEXTS, ("iteration", *RECORDED))
    families = rows.groupby("trained_on", sort=False)
    with styled():
        figure = new_figure(1.1 + _HEIGHT * families.ngroups)
        panels = figure.subplots(families.ngroups, 2, squeeze=False)
        headline(
            figure,
            "Meta-training",
            f"training tasks, means over {_PARTS} parts of a run; lines: mean over training "
            "seeds, bands: range over seeds; dashed: before the inner steps; gray line: the "
            "baseline; crosses: a run collapsed and returned to an earlier state; K: inner steps; "
            "FOMAML: MAML without second derivatives",
        )
        for (left, right), (family, mine) in zip(panels, families, strict=True):
            left.set_title(f"trained on {family}")
            left.set_ylabel("return / baseline")
            right.set_ylabel("entropy after adaptation (nats)")
            # Returns that are costs are below 0, and so is the baseline's over its absolute value.
            left.axhline(-1 if mine["after"].mean() < 0 else 1, color=MUTED, zorder=1)
            _draw_panel(left, mine, {"before": (0, (4, 2)), "after": "-"})
            _draw_panel(right, mine, {"entropy": "-"})
    return figure


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


def collect_rates(request: FigureRequest) -> list[Row]:
    """Reads the inner rates of runs.

    Returns:
        One row for each run that has learned rates, and block of parameters in the order of the
        network: ``rate``, and ``start``, what it began with.

    Raises:
        InputError: if no run has learned rates, or one cannot be used.
    """
    rows: list[Row] = []
    for path in require_runs(request):
        policy = load_meta_policy(path)
        if policy.learned_rates:
            head, start = _head(path, policy.config), policy.meta.inner_rate
            rows += [
                {**head, "block": block, "place": place, "rate": rate, "start": start}
                for place, (block, rate) in enumerate(policy.rates.items())
            ]
    if not rows:
        raise InputError("none of these runs has learned inner rates")
    return rows


def draw_rates(table: Path) -> Figure:
    """Draws the CSV file of `collect_rates`: methods beside each other on the line of a block."""
    rows = read_frame(table, ("method", "trained_on", "meta_seed", "block"), OF_RATES)
    blocks = rows.sort_values("place", kind="stable")["block"].unique().tolist()
    families = rows.groupby("trained_on", sort=False)
    with styled():
        figure = new_figure(1.8 + _BLOCK_HEIGHT * len(blocks))
        panels = figure.subplots(1, families.ngroups, sharey=True, squeeze=False)[0]
        headline(
            figure,
            "Learned inner rates",
            "dots: runs; lines: geometric mean of a method's runs; dotted: initial rates; "
            "layers from the input (top) to the actions (bottom)",
        )
        for axes, (family, mine) in zip(panels, families, strict=True):
            axes.set_title(f"trained on {family}")
            methods = mine["method"].unique()
            for order, method in enumerate(methods):
                color, _ = color_and_style(method, methods)
                some = mine[mine["method"] == method]
                shift = 0.7 * ((order + 0.5) / len(methods) - 0.5)
                places = some["block"].map(blocks.index) + shift
                axes.plot(some["rate"], places, "o", color=color, markersize=3.5, alpha=0.6)
                means = np.exp(np.log(some["rate"]).groupby(places).mean())
                axes.plot(means, means.index, "|", color=color, markersize=11, label=method)
            for start in mine["start"].unique():
                axes.axvline(start, color=MUTED, linewidth=1.0, linestyle=":", zorder=1)
            axes.set_xscale("log")
            shown = mine[["rate", "start"]].to_numpy()
            close = shown.max() < _CLOSE * shown.min()
            subs = (1.0, 2.0, 3.0, 5.0) if close else (1.0, 3.0)
            axes.xaxis.set_major_locator(LogLocator(subs=subs))
            axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_xlabel("inner rate")
            axes.legend(fontsize=8.5, loc="best")
            name_lines(axes, blocks, top=-0.5)
    return figure
