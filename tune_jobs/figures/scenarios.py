"""Every rule in several scenarios side by side, each with side metrics."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.evaluation import Metric, get_metric
from cluster_env.evaluation.metrics import SIZES
from tune_jobs.figures.comparison import COLUMNS, ranked, read_policies
from tune_jobs.figures.kit.dots import PANEL, list_dots, panels_beside
from tune_jobs.figures.kit.heat import HeatCell, draw_heat
from tune_jobs.figures.style import TABLE_DPI, WIDTH, headline, new_figure, styled
from tune_jobs.measuring.table import beside
from tune_jobs.measuring.wording import spec_of_row
from tune_jobs.tables.columns import SHARE, TIME, Time, column, plain_time
from tune_jobs.tables.frames import with_numbers

_MOST_PANELS = 4

_GRID_ROW, _GRID_COLUMN, _GRID_NAMES = 0.36, 0.82, 1.3  # inches

_WORST = 30.0  # times the best of a column, from where on all have the same color

_DARK = 8.0  # from here on letters are white

_TITLE_CHARACTERS = 11

_MOST_PIXELS = 2200  # of a table's width: files of wider ones exceed a megabyte


def draw(table: Path) -> Figure:
    """A panel for each scenario: policies from best to worst, with side metrics written beside.

    More than a handful of scenarios become columns of one colored table.
    """
    rows = read_policies(table, (*COLUMNS, "place", "exhibit"))
    first = rows.iloc[0]
    metric = get_metric(first["metric"])
    side = beside(first)
    rows = with_numbers(rows, [metric.name, f"{metric.name}_low", f"{metric.name}_high", *side])
    by_scenario = {str(name): some for name, some in rows.groupby("place", sort=False)}
    with styled():
        if len(by_scenario) > _MOST_PANELS:
            return _draw_grid(by_scenario, metric)
        sizes = [column(name).head for name in side if name.rpartition("_")[2] in SIZES]
        by_size = f"; {', '.join(sizes)}: slowdown of jobs of that size" if sizes else ""
        note = (
            f"{metric.label}, best first; bars: 95% intervals over jobsets. Side metrics: "
            "utilization while jobs arrive (util) and until the last finish (to end), mean "
            f"wait (wait) and mean of the longest waits (longest){by_size}"
        )
        numbers = {name: column(name).head for name in (metric.name, *side)}
        order = {name: ranked(some, metric.name, metric.name) for name, some in by_scenario.items()}
        figure, panels = draw_panels(order, metric.name, numbers, note)
        for axes, (name, some) in zip(panels, order.items(), strict=True):
            low, high = some[metric.name].min(), some[metric.name].max()
            if 0 < 20 * low < high:
                axes.set_xscale("log")
            jobs = f"{float(some['num_jobs'].iloc[0]):,.0f} jobs"
            title = f"{name}: {counted(some['jobsets'].iloc[0], 'jobset')}, {jobs}"
            axes.set_title(title, pad=14, fontsize=10)
        panels[-1].set_xlabel(metric.label)
    return figure


def draw_panels(
    scenarios: Mapping[str, pd.DataFrame],
    dots: str,
    numbers: Mapping[str, str],
    note: str,
    width: float = PANEL,
) -> tuple[Figure, list[Axes]]:
    """A panel for each scenario with a dot for each policy, and numbers beside it.

    Args:
        scenarios: policies in order, by name.
        dots: column of the dots.
        numbers: heads of the numbers, by column.
        note: small print.
        width: of a panel without the numbers, in inches.
    """
    first = next(iter(scenarios.values())).iloc[0]
    num_lines = [len(some) for some in scenarios.values()]
    figure, panels = panels_beside(num_lines, len(numbers), width)
    headline(figure, first["exhibit"], note)
    for axes, some in zip(panels, scenarios.values(), strict=True):
        time = spec_of_row(some.iloc[0]).presentation.time
        cells = [[written(one, row[one], time) for one in numbers] for _, row in some.iterrows()]
        list_dots(axes, some, dots, cells, list(numbers.values()))
    return figure, panels


def counted(count: object, noun: str) -> str:
    """``1 jobset``, ``1,000 jobsets``."""
    return f"1 {noun}" if int(str(count)) == 1 else f"{int(str(count)):,} {noun}s"


def _draw_grid(by_scenario: Mapping[str, pd.DataFrame], metric: Metric) -> Figure:
    """A line for each policy, best first, and a column for each scenario."""
    shown = {name: rows.set_index("key", drop=False) for name, rows in by_scenario.items()}
    policies = next(iter(shown.values()))
    first = policies.iloc[0]
    means = pd.DataFrame({name: rows[metric.name] for name, rows in shown.items()})
    worse = means.max() / means if metric.higher_is_better else means / means.min()
    worse = worse.where((means > 0) & (means.min() > 0), 1.0).loc[policies.index]
    worse = worse.iloc[np.argsort(np.log(worse).mean(axis=1).to_numpy(), kind="stable")]
    policies = policies.loc[worse.index]
    tuned = policies["policy"].str.contains("*", regex=False) & ~policies["is_learned"]
    names = policies["label"].str.replace("\n", " ").mask(tuned, policies["key"] + "*")
    heads = [textwrap.fill(name.replace(", ", " "), _TITLE_CHARACTERS) for name in shown]
    cells = [
        [
            _grid_cell(rows.loc[key], metric.name, worse.loc[key, name])
            for name, rows in shown.items()
        ]
        for key in worse.index
    ]
    height, width = 1.9 + _GRID_ROW * len(worse), _GRID_NAMES + _GRID_COLUMN * len(shown)
    width = max(WIDTH, width)
    figure = new_figure(height, width, min(TABLE_DPI, int(_MOST_PIXELS / width)))
    axes = figure.subplots()
    other = "slowdown" if metric.name == "utilization" else "utilization while jobs arrive"
    headline(
        figure,
        first["exhibit"],
        f"{metric.label}; in small print {other} and the mean of the longest waits. Color: "
        "times worse than the best of the column, which is bold. Means over "
        f"{int(first['jobsets']):,} jobsets; intervals and other side metrics are in the CSV",
    )
    colors = {"cmap": "YlOrBr", "vmin": 0, "vmax": np.log(_WORST), "alpha": 0.8}
    draw_heat(axes, np.log(worse.to_numpy()), cells, names, heads, **colors)
    for tick, learned in zip(axes.get_yticklabels(), policies["is_learned"], strict=True):
        tick.set_fontweight("bold" if learned else "normal")
    return figure


def _grid_cell(row: pd.Series, metric: str, times_worse: float) -> HeatCell:
    """The mean, and side metrics below."""
    spec = spec_of_row(row)
    other = f"{row['utilization']:.0%}"
    if metric == "utilization":
        slowdown = row[spec.headline]
        other = f"{slowdown:,.{1 if slowdown < 100 else 0}f}"
    below = f"{other}, {spec.presentation.time(row['longest_wait'])}"
    best, dark = times_worse == 1, times_worse > _DARK
    return HeatCell(written(metric, row[metric]), below, bold=best, dark=dark)


def written(metric: str, value: float, time: Time = plain_time) -> str:
    """A mean of a metric in a cell; `time` writes times of the world."""
    if column(metric).unit in (TIME, SHARE):
        return column(metric).write(value, time)
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
