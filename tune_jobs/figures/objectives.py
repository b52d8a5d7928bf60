"""Policies trained for different objectives, on each of them (DeepRM, figure 5)."""

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from cluster_env.evaluation import METRICS, Metric
from tune_jobs.figures.comparison import POLICY, SHORT, measured_on, read_policies
from tune_jobs.figures.kit.heat import HeatCell, draw_heat
from tune_jobs.figures.style import headline, new_figure, styled
from tune_jobs.measuring.policy_specs import learned_name
from tune_jobs.measuring.wording import on_jobs
from tune_jobs.tables.columns import column
from tune_jobs.tables.frames import with_numbers

COLUMNS = (
    *("metric", "jobsets", *POLICY, "trained_for", "value", "ratio", "ratio_low", "ratio_high"),
    *("interval_over", "reference", "best", "tied", "unfinished"),
)

_ROW_HEIGHT = 0.42

_TITLE_CHARACTERS = 10

_NAME_CHARACTERS = 34

_WORST = 2.5  # times the best heuristic; whoever is farther has the same color

_DARK = 2.0  # from here on the color is too dark for black letters


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_policies(table, COLUMNS, numbers=("value", "ratio", "unfinished"))
    rows = with_numbers(rows, [name for name in SHORT if name in rows])
    metrics = [METRICS.get(name) for name in rows["metric"].unique()]
    # Heuristics stand for those that were tuned for the first metric.
    policies = rows[rows["metric"] == metrics[0].name].set_index("key", drop=False)
    by_metric = {str(name): some.set_index("key") for name, some in rows.groupby("metric")}
    side = [name for name in SHORT if name not in by_metric and name in rows]
    side = [name for name in side if policies[name].notna().all()]
    priced = all(name in rows for name in SHORT)
    note = (
        "; without color: side metrics, for heuristics tuned for the first column" if priced else ""
    )
    # How many times worse than the best heuristic's means are; below 1 they are better.
    ratios = np.array([by_metric[one.name].loc[policies.index, "ratio"] for one in metrics]).T
    signs = np.array([-1.0 if metric.higher_is_better else 1.0 for metric in metrics])
    worse = ratios.clip(min=1 / _WORST) ** signs
    cells = [
        [
            *(
                _cell(by_metric[metric.name].loc[key], metric, worse[line, column] > _DARK)
                for column, metric in enumerate(metrics)
            ),
            *(HeatCell(column(name).write(policies.loc[key, name])) for name in side),
        ]
        for line, key in enumerate(policies.index)
    ]
    with styled():
        figure = new_figure(2.4 + _ROW_HEIGHT * len(policies))
        axes = figure.subplots()
        headline(
            figure,
            f"Each policy by each objective, {on_jobs(rows.iloc[0])}",
            f"Means; {measured_on(rows)}. Color: times worse (brown) or better (green) than "
            "the best heuristic; bold: the best of a column, and those that are not "
            f"significantly different{note}",
        )
        limit = np.log(_WORST)
        draw_heat(
            axes,
            np.clip(np.log(worse), -limit, limit),
            cells,
            [_name_of(row) for _, row in policies.iterrows()],
            [_head(metric) for metric in [*metrics, *map(METRICS.get, side)]],
            cmap="BrBG_r",
            norm=TwoSlopeNorm(0.0, -limit, limit),
            alpha=0.75,
        )
        axes.tick_params(labelsize=8.5, top=True)
        axes.tick_params(axis="x", labelsize=7.5)
    return figure


def _cell(row: pd.Series, metric: Metric, dark: bool) -> HeatCell:
    """The mean, with a sign where jobs were left unfinished."""
    cut = "\N{GREATER-THAN OR EQUAL TO}" if row["unfinished"] and metric.per == "job" else ""
    digits = 3 if metric.name == "utilization" else 2
    value = row["value"]
    text = f"{value:.{digits}f}" if value < 100 else f"{value:,.0f}"
    return HeatCell(f"{cut}{text}", bold="True" in (row["best"], row["tied"]), dark=dark)


def _head(metric: Metric) -> str:
    """Name of a column."""
    better = "; higher is better" if metric.higher_is_better else ""
    label = metric.label.removeprefix("mean of the ").removeprefix("mean ")
    return textwrap.fill(f"{label}{better}", _TITLE_CHARACTERS, break_long_words=False)


def _name_of(row: pd.Series) -> str:
    """Name of a policy, with the objective that it was trained for where the name does not say."""
    if not row["is_learned"]:
        return f"{row['key']}*" if "*" in row["policy"] else row["policy"]
    seeds = int(row["seeds"])
    plural = f"{seeds}\N{NO-BREAK SPACE}seed{'s' if seeds > 1 else ''}"
    name, _, how = learned_name(row["key"]).rstrip(")").partition(" (")
    said = [how] if how else []
    if f"-{row['trained_for']}" not in name:
        said.append(f"for {row['trained_for']}")
    lines = textwrap.wrap(name, _NAME_CHARACTERS)
    return "\n".join([*lines, *textwrap.wrap(", ".join([*said, plural]), _NAME_CHARACTERS)])
