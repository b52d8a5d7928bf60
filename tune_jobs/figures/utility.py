"""Figures 2 to 5 of the paper on utility accrual (Vengerov), learned values, and several servers.

50 experiments of 20,000 steps, or 20 of several servers with one queue (section 4.2), after 25,000
steps of learning on other arrivals; ``--jobsets`` makes it fewer experiments.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tune_jobs.figures.kit.bars import draw_groups
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, styled
from tune_jobs.recipes.utility import ORDERS, RULES, SHAPES
from tune_jobs.tables.frames import read_frame

PAPER_VALUES = (-0.97, -0.25, -0.86, -0.39, 0.48, -0.85, 4.03, 0.19)


Looks = Mapping[str, tuple[str, str]]

LOOKS: Looks = {
    "none": ("best fit alone", "#8a8a8a"),
    "aggressive": ("aggressive", "#e69f00"),
    "utility": ("utility-based", "#d55e00"),
}
"""Names and colors of policies."""

POOL_LOOKS: Looks = {
    "none": LOOKS["none"],
    "aggressive": LOOKS["aggressive"],
    "own": ("values of each server", "#d55e00"),
    "shared": ("one value function", "#009e73"),
}

COLUMN_NAMES = {"squeeze": "squeezing", "preempt": "preemption", "both": "both"}

TEXTS = ("policy", "column", "utility", "dropped")

NUMBERS = (
    *("rate", "experiments"),
    *("productivity", "productivity_error", "utilization", "utilization_error"),
)


def _headline(
    figure: Figure, title: str, rows: pd.DataFrame, more: str = "", each: str = ""
) -> None:
    """The title, and on what the numbers rest."""
    more = more or f"{rows['rate'].iloc[0]:g} jobs a step; the axis does not begin at 0"
    headline(
        figure,
        title,
        f"{rows['experiments'].iloc[0]:g} experiments of 20,000 steps"
        f"{each or ' on 24 processors'}; bars: standard errors; {more}",
    )


def _bars(
    axes: Axes,
    rows: pd.DataFrame,
    measured: str = "productivity",
    along: str = "column",
    looks: Looks = LOOKS,
    digits: int = 0,
    size: float = 7.0,
) -> None:
    """Groups of bars with their errors (``_error``) and numbers, a group for each value `along`."""
    labels = [COLUMN_NAMES.get(group, group) for group in rows[along]]
    rows = rows.assign(label=labels, y=rows[measured], error=rows[f"{measured}_error"])
    series = [(*look, rows[rows["policy"] == policy]) for policy, look in looks.items()]
    draw_groups(axes, series, upright=True)
    for bars, (_, _, mine) in zip(list(axes.containers), series, strict=True):
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        axes.errorbar(middles, mine["y"], mine["error"], fmt="none", ecolor=INK, capsize=2.5)
        for at, height, error in zip(middles, mine["y"], mine["error"], strict=True):
            _write_above(axes, f"{height:.{digits}f}", (at, height + error), size)
    axes.grid(axis="x", visible=False)


def _write_above(
    axes: Axes, text: str, place: tuple[float, float], size: float, up: float = 3
) -> None:
    axes.annotate(
        text, place, xytext=(0, up), textcoords="offset points", ha="center", fontsize=size
    )


def draw_productivity(table: Path) -> Figure:
    """Figure 2."""
    rows = read_frame(table, TEXTS, NUMBERS)
    rows = rows[rows["dropped"] == "False"]
    with styled():
        figure = new_figure(4.6)
        axes = figure.subplots()
        nine = rows[rows["policy"].isin(LOOKS)]
        _bars(axes, nine, digits=1, size=8.5)
        others = rows.set_index("policy")["productivity"][list(ORDERS)]
        places = 3.13 + 0.28 * np.arange(len(ORDERS))
        axes.plot(places, others, "D", color="#0072b2", markersize=6)
        for at, (name, value) in zip(places, others.items(), strict=True):
            _write_above(axes, f"{name}\n{value:.1f}", (at, value), 8, up=6)
        axes.set_ylim(bottom=max(0.0, rows["productivity"].min() - 12))
        axes.set_ylabel("utility of finished jobs (1000 units)")
        labels = [label.get_text() for label in axes.get_xticklabels()]
        axes.set_xticks([*axes.get_xticks(), places.mean()], [*labels, "neither, other orders"])
        axes.legend(loc="upper left", fontsize=9)
        _headline(figure, "Productivity of the paper's nine policies", rows)
    return figure


def draw_utilization(table: Path) -> Figure:
    """Figure 3."""
    rows = read_frame(table, TEXTS, NUMBERS)
    rows = rows[rows["policy"].isin(LOOKS)]
    titles = {
        "False": "jobs without utility stay in the queue",
        "True": "jobs without utility are dropped",
    }
    with styled():
        figure = new_figure(4.2)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (dropped, title) in zip(panels, titles.items(), strict=True):
            mine = rows[rows["dropped"] == dropped]
            _bars(axes, mine, "utilization", digits=3, size=6.5)
            axes.set_title(title)
        panels[0].set_ylim(rows["utilization"].min() - 0.03, rows["utilization"].max() + 0.02)
        panels[0].set_ylabel("mean share of busy processors")
        panels[1].legend(loc="lower right", fontsize=9, framealpha=1, frameon=True)
        _headline(figure, "Utilization of the paper's nine policies", rows)
    return figure


def draw_rates(table: Path) -> Figure:
    """Figure 4."""
    rows = read_frame(table, TEXTS, NUMBERS).sort_values("rate", kind="stable")
    rows["productivity_low"] = rows["productivity"] - rows["productivity_error"]
    rows["productivity_high"] = rows["productivity"] + rows["productivity_error"]
    curves = []
    for policy, (name, color) in LOOKS.items():
        mine = rows[rows["policy"] == policy]
        curves.append(Curve.of(mine, "rate", "productivity", name=name, color=color, marker="o"))
    with styled():
        figure = new_figure(4.6)
        axes = figure.subplots()
        draw_curves(axes, curves, "caps")
        rates = rows["rate"].unique()
        worth = rates * 20_000 * 90 / 1000
        axes.plot(rates, worth, ":", color=MUTED, label="all jobs finished in time")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("jobs arriving per step")
        axes.set_ylabel("utility of finished jobs (1000 units)")
        axes.legend(loc="upper left", fontsize=9)
        title = "Productivity against the rate of arrivals"
        _headline(figure, title, rows, "with preemption and squeezing")
    return figure


def draw_shapes(table: Path) -> Figure:
    """Figure 5."""
    rows = read_frame(table, TEXTS, NUMBERS)
    with styled():
        figure = new_figure(4.4)
        panels = figure.subplots(1, len(SHAPES), sharey=True)
        for axes, (shape, title) in zip(panels, SHAPES.items(), strict=True):
            mine = rows[rows["utility"] == shape]
            _bars(axes, mine)
            axes.set_title(title)
            both = mine[mine["column"] == "both"].set_index("policy")["productivity"]
            gain = both["utility"] / both["none"] - 1
            axes.set_xlabel(f"utility-based, both: {gain:+.1%}\nover best fit alone")
            axes.tick_params(axis="x", labelsize=9)
        panels[0].set_ylim(bottom=max(0.0, rows["productivity"].min() - 15))
        panels[0].set_ylabel("utility of finished jobs (1000 units)")
        panels[0].legend(loc="lower right", fontsize=8, framealpha=1, frameon=True)
        _headline(figure, "Productivity under other time-utility functions", rows)
    return figure


def draw_machines(table: Path) -> Figure:
    """Several servers, allocated one by one: a panel for each rate."""
    rows = read_frame(table, ("policy", "machines", "allocation"), ("rate", *NUMBERS[1:4]))
    rows = rows[rows["allocation"] == "machine"]
    rates = rows.groupby("rate", sort=False)
    with styled():
        figure = new_figure(4.6)
        panels = figure.subplots(1, rates.ngroups, squeeze=False)[0]
        for axes, (rate, mine) in zip(panels, rates, strict=True):
            counts = mine.assign(
                servers=[f"{count} server{'s' * (count != '1')}" for count in mine["machines"]]
            )
            _bars(axes, counts, along="servers", looks=POOL_LOOKS)
            low, high = mine["productivity"].min(), mine["productivity"].max()
            axes.set_ylim(max(0.0, low - 20), high + 0.35 * (high - low) + 10)
            axes.set_title(f"{rate:g} jobs a step and server")
        panels[0].set_ylabel("utility of a server (1000 units)")
        panels[0].legend(loc="upper left", fontsize=8, framealpha=1, frameon=True)
        title, each = "Several servers with one queue", ", each server of 24 processors"
        _headline(figure, title, rows, "the axes do not begin at 0", each)
    return figure


def draw_values(table: Path) -> Figure:
    """The learned rulebase as a table, and its values as surfaces, beside the paper's."""
    learned = [f"p_{rule}{end}" for end in ("", "_error") for rule in RULES]
    rows = read_frame(table, TEXTS, (*NUMBERS, *learned))
    rows = rows[(rows["policy"] == "utility") & (rows["dropped"] == "False")]
    [row] = rows[rows["column"] == "both"].to_dict("records")
    values, errors = np.array([row[name] for name in learned]).reshape(2, len(RULES))
    x = np.linspace(0, 1, 41)
    with styled():
        figure = new_figure(7.0)
        grid = figure.add_gridspec(3, 2, height_ratios=(1, 1, 0.9))
        whose = {"learned here": values, "paper's": np.array(PAPER_VALUES)}
        for column, (owner, p) in enumerate(whose.items()):
            for line, idle in enumerate((0.0, 0.5)):
                axes = figure.add_subplot(grid[line, column])
                surface = axes.contourf(x, 10 * x, _surface(p, x, idle), 12, cmap="viridis")
                figure.colorbar(surface, ax=axes)
                axes.set_xlabel("x1: mean expected unit utility", fontsize=9)
                axes.set_ylabel("x2: steps to next finish", fontsize=9)
                axes.grid(visible=False)
                axes.set_title(f"{owner}, {idle:.0%} idle", fontsize=10)
        axes = figure.add_subplot(grid[2, :])
        axes.axis("off")
        drawn = axes.table(
            [
                list(RULES),
                [f"{value:.0f} ± {error:.0f}" for value, error in zip(values, errors, strict=True)],
                [f"{value:.2f}" for value in PAPER_VALUES],
            ],
            rowLabels=["x1 x2 x3", "learned", "paper"],
            loc="center",
            cellLoc="center",
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(8)
        drawn.scale(1, 1.5)
        headline(
            figure,
            "Values of server states",
            f"means over {row['experiments']:g} servers that preempt and squeeze, ± "
            "standard errors; S: small, L: large; values are determined only up to scale, "
            "so compare shapes",
        )
    return figure


def _surface(p: NDArray[np.float64], x: NDArray[np.float64], x3: float) -> NDArray[np.float64]:
    """Values of a rulebase at all ``x1`` (columns) and ``x2`` (rows), float64 ``(n, n)``."""
    small_large = [1 - x, x]
    weights = np.einsum("ai,bj,c->abcji", small_large, small_large, [1 - x3, x3])
    return np.einsum("abc,abcji->ji", p.reshape(2, 2, 2), weights)  # in the order of RULES
