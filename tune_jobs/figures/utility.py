"""Figures 2 to 5 of the paper on utility accrual (Vengerov), and the values that are learned.

50 experiments of 20,000 steps, after 25,000 steps of learning on other arrivals; ``--jobsets``
makes it fewer experiments.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rllib_configs.registries import prepare
from rllib_configs.worlds.accrual import COLUMNS, POLICIES, Outcome, Setting, experiment
from tune_jobs.comparing.choices import choose_config
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENTS = 50
RATES = (0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2)
SHAPES = {"root": "concave: root", "linear": "linear", "square": "convex: square"}
"""Time-utility functions of figure 5."""

RULES = ("SSS", "SSL", "SLS", "SLL", "LSS", "LSL", "LLS", "LLL")
PAPER_VALUES = (-0.97, -0.25, -0.86, -0.39, 0.48, -0.85, 4.03, 0.19)

NAMES = {"none": "best fit alone", "aggressive": "aggressive", "utility": "utility-based"}
COLORS = {"none": "#8a8a8a", "aggressive": "#e69f00", "utility": "#d55e00"}
COLUMN_NAMES = {"squeeze": "squeezing", "preempt": "preemption", "both": "both"}
ORDERS = ("edf", "density", "dasa", "lbesa")

_TABLE = ("policy", "column", "rate", "utility", "dropped", "experiments")
_MEASURED = ("productivity", "productivity_error", "utilization", "utilization_error")


def setting_of(request: FigureRequest, **changes: Any) -> Setting:
    """That of the preset fuzzy-td, the paper's, with the changes that are asked for (``--set``).

    There are as many experiments as are asked for, at most 50.
    """
    config = prepare(
        choose_config(request.source or "fuzzy-td", request.overrides, request.task_options, [])
    )
    experiments = min(request.num_jobsets, EXPERIMENTS)
    return replace(Setting.of(config, experiments, request.seed), **changes)


def rows_of(setting: Setting, outcomes: Iterable[Outcome]) -> list[Row]:
    """A row for each policy and column: means over experiments and their standard errors."""
    rows: list[Row] = []
    aggressive: dict[str, NDArray[np.float64]] = {}  # by column
    for one in outcomes:
        root = np.sqrt(one.productivity.size)
        if one.policy == "aggressive":
            aggressive[one.column] = one.productivity
        measured = {
            "productivity": one.productivity.mean() / 1000,
            "productivity_error": one.productivity.std(ddof=1) / root / 1000 if root > 1 else 0.0,
            "utilization": one.utilization.mean(),
            "utilization_error": one.utilization.std(ddof=1) / root if root > 1 else 0.0,
        }
        learned: dict[str, float] = {}
        if one.policy == "utility" and one.column in aggressive:  # on the same arrivals
            gain = (one.productivity - aggressive[one.column]) / 1000
            learned["over_aggressive"] = float(gain.mean())
            learned["over_aggressive_error"] = float(gain.std(ddof=1) / root) if root > 1 else 0.0
        if one.parameters is not None:
            for rule, values in zip(RULES, one.parameters.T, strict=True):
                learned[f"p_{rule}"] = float(values.mean())
                learned[f"p_{rule}_error"] = float(values.std() / root)
        rows.append(
            {
                "policy": one.policy,
                "column": one.column,
                "rate": setting.rate,
                "utility": setting.utility,
                "dropped": setting.world.drop_expired,
                "experiments": one.productivity.size,
                **{name: float(value) for name, value in measured.items()},
                **learned,
            }
        )
    return rows


def collect_policies(request: FigureRequest) -> list[Row]:
    """The nine policies of figures 2 and 3, and orders of the literature.

    Twice: where jobs that are worth nothing stay in the queue, and where they are let go.
    """
    rows: list[Row] = []
    for dropped in (False, True):
        setting = setting_of(request)
        setting = replace(setting, world=replace(setting.world, drop_expired=dropped))
        rows += rows_of(setting, experiment(setting))
        rows += rows_of(setting, experiment(setting, ORDERS, ["both"]))
    return rows


def collect_rates(request: FigureRequest) -> list[Row]:
    """Figure 4: policies that may do both, against the rate of arrivals (``--at``)."""
    rows: list[Row] = []
    for rate in request.at or RATES:
        setting = setting_of(request, rate=rate)
        rows += rows_of(setting, experiment(setting, columns=["both"]))
    return rows


def collect_shapes(request: FigureRequest) -> list[Row]:
    """Figure 5: the nine policies under three time-utility functions."""
    rows: list[Row] = []
    for shape in SHAPES:
        setting = setting_of(request, utility=shape)
        rows += rows_of(setting, experiment(setting))
    return rows


def _find(rows: Sequence[Cells], **wanted: str) -> list[Cells]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _note(rows: Sequence[Cells], more: str) -> str:
    count = int(number(rows[0], "experiments"))
    return f"{count} experiments of 20,000 steps on 24 processors; bars: standard errors; {more}"


def _bars(
    axes: "Axes", rows: Sequence[Cells], measured: str, digits: int, size: float = 8.5
) -> None:
    """Groups of bars, a group for each column and a bar for each policy."""
    for place, policy in enumerate(POLICIES):
        found = [_find(rows, policy=policy, column=column)[0] for column in COLUMNS]
        x = np.arange(len(COLUMNS)) + 0.27 * (place - 1)
        values = [number(row, measured) for row in found]
        errors = [number(row, f"{measured}_error") for row in found]
        axes.bar(x, values, 0.25, color=COLORS[policy], label=NAMES[policy])
        axes.errorbar(x, values, errors, fmt="none", ecolor=INK, capsize=3, linewidth=1)
        for k, value in enumerate(values):
            axes.annotate(
                f"{value:.{digits}f}",
                (float(x[k]), value + errors[k]),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=size,
            )
    axes.set_xticks(range(len(COLUMNS)), [COLUMN_NAMES[column] for column in COLUMNS])
    axes.grid(axis="x", visible=False)


def draw_productivity(table: Path) -> "Figure":
    """Figure 2."""
    rows = _find(read_table(table, (*_TABLE, *_MEASURED)), dropped="False")
    with styled():
        figure = new_figure(4.6)
        axes = figure.subplots()
        lowest = min(number(row, "productivity") for row in rows)
        _bars(axes, rows, "productivity", 1)
        for place, name in enumerate(ORDERS):
            value = number(_find(rows, policy=name)[0], "productivity")
            axes.plot([2.75 + 0.28 * place], [value], "D", color="#0072b2", markersize=6)
            axes.annotate(
                f"{name}\n{value:.1f}",
                (2.75 + 0.28 * place, value),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        axes.set_ylim(bottom=max(0.0, lowest - 12))
        axes.set_ylabel("utility of finished jobs (1000 units)")
        ticks = [*range(len(COLUMNS)), 3.17]
        labels = [*(COLUMN_NAMES[column] for column in COLUMNS), "neither, other orders"]
        axes.set_xticks(ticks, labels)
        axes.legend(loc="upper left", fontsize=9)
        rate = number(rows[0], "rate")
        headline(
            figure,
            "Productivity of the paper's nine policies",
            _note(rows, f"{rate:g} jobs a step; the axis does not begin at 0"),
        )
    return figure


def draw_utilization(table: Path) -> "Figure":
    """Figure 3."""
    rows = read_table(table, (*_TABLE, *_MEASURED))
    kinds = {"False": "worthless jobs stay in the queue", "True": "worthless jobs are let go"}
    with styled():
        figure = new_figure(4.2)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (dropped, title) in zip(panels, kinds.items(), strict=True):
            _bars(axes, _find(rows, dropped=dropped), "utilization", 3, size=6.5)
            axes.set_title(title)
        values = [number(row, "utilization") for row in rows if row["policy"] in POLICIES]
        panels[0].set_ylim(min(values) - 0.03, max(values) + 0.02)
        panels[0].set_ylabel("mean share of busy processors")
        panels[1].legend(loc="lower right", fontsize=9, framealpha=1, frameon=True)
        rate = number(rows[0], "rate")
        headline(
            figure,
            "Utilization of the paper's nine policies",
            _note(rows, f"{rate:g} jobs a step; the axis does not begin at 0"),
        )
    return figure


def draw_rates(table: Path) -> "Figure":
    """Figure 4."""
    rows = read_table(table, (*_TABLE, *_MEASURED))
    with styled():
        figure = new_figure(4.6)
        axes = figure.subplots()
        for policy in POLICIES:
            found = sorted(_find(rows, policy=policy), key=lambda row: number(row, "rate"))
            x, y, errors = (
                [number(row, name) for row in found]
                for name in ("rate", "productivity", "productivity_error")
            )
            axes.errorbar(
                x, y, errors, fmt="o-", color=COLORS[policy], capsize=3, label=NAMES[policy]
            )
        rates = sorted({number(row, "rate") for row in rows})
        worth = [rate * 20_000 * 90 / 1000 for rate in rates]
        axes.plot(rates, worth, ":", color=MUTED, label="all that arrives, done in time")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("jobs that arrive in a step")
        axes.set_ylabel("utility of finished jobs (1000 units)")
        axes.legend(loc="upper left", fontsize=9)
        headline(
            figure,
            "Productivity against the rate of arrivals",
            _note(rows, "with preemption and squeezing"),
        )
    return figure


def draw_shapes(table: Path) -> "Figure":
    """Figure 5."""
    rows = read_table(table, (*_TABLE, *_MEASURED))
    with styled():
        figure = new_figure(4.4)
        panels = figure.subplots(1, len(SHAPES), sharey=True)
        lowest = min(number(row, "productivity") for row in rows)
        for axes, (shape, title) in zip(panels, SHAPES.items(), strict=True):
            own = _find(rows, utility=shape)
            _bars(axes, own, "productivity", 0, size=7)
            axes.set_title(title)
            best, base = (
                number(_find(own, policy=policy, column="both")[0], "productivity")
                for policy in ("utility", "none")
            )
            axes.set_xlabel(f"utility-based, both: {best / base - 1:+.1%}\nover best fit alone")
            axes.tick_params(axis="x", labelsize=9)
        panels[0].set_ylim(bottom=max(0.0, lowest - 15))
        panels[0].set_ylabel("utility of finished jobs (1000 units)")
        panels[0].legend(loc="lower right", fontsize=8, framealpha=1, frameon=True)
        rate = number(rows[0], "rate")
        headline(
            figure,
            "Productivity under other time-utility functions",
            _note(rows, f"{rate:g} jobs a step; the axis does not begin at 0"),
        )
    return figure


def draw_values(table: Path) -> "Figure":
    """The learned rulebase as a table, and its values as surfaces, beside the paper's."""
    rows = read_table(table, (*_TABLE, *_MEASURED, "p_SSS"))
    [row] = _find(rows, policy="utility", column="both", dropped="False")
    learned = [number(row, f"p_{rule}") for rule in RULES]
    errors = [number(row, f"p_{rule}_error") for rule in RULES]
    with styled():
        figure = new_figure(7.0)
        grid = figure.add_gridspec(3, 2, height_ratios=(1, 1, 0.9))
        for column, (p, whose) in enumerate(((learned, "learned here"), (PAPER_VALUES, "paper's"))):
            for line, idle in enumerate((0.0, 0.5)):
                axes = figure.add_subplot(grid[line, column])
                _draw_surface(axes, p, idle)
                axes.set_title(f"{whose}, {idle:.0%} idle", fontsize=10)
        axes = figure.add_subplot(grid[2, :])
        axes.axis("off")
        cells = [
            list(RULES),
            [f"{value:.0f} ± {error:.0f}" for value, error in zip(learned, errors, strict=True)],
            [f"{value:.2f}" for value in PAPER_VALUES],
        ]
        drawn = axes.table(
            cells,
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
            f"means over {int(number(row, 'experiments'))} servers that preempt and squeeze, ± "
            "standard errors; S is small, L large; values have no scale: only shapes compare",
        )
    return figure


def _draw_surface(axes: "Axes", p: Sequence[float], x3: float) -> None:
    x1, x2 = np.meshgrid(np.linspace(0, 1, 41), np.linspace(0, 1, 41))
    total = np.zeros_like(x1)
    for rule, value in zip(RULES, p, strict=True):
        weight = np.ones_like(x1)
        for label, x in zip(rule, (x1, x2, np.full_like(x1, x3)), strict=True):
            weight = weight * (x if label == "L" else 1 - x)
        total += weight * value
    drawn = axes.contourf(x1, 10 * x2, total, 12, cmap="viridis")
    axes.figure.colorbar(drawn, ax=axes)
    axes.set_xlabel("x1: mean expected unit utility", fontsize=9)
    axes.set_ylabel("x2: steps to next finish", fontsize=9)
    axes.grid(visible=False)


FIG2 = FigureRecipe(collect_policies, draw_productivity)
FIG3 = FigureRecipe(collect_policies, draw_utilization)
FIG4 = FigureRecipe(collect_rates, draw_rates)
FIG5 = FigureRecipe(collect_shapes, draw_shapes)
VALUES = FigureRecipe(collect_policies, draw_values)
