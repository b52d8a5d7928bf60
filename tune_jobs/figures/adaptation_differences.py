"""Each method beside joint training on the same tasks, and how often adaptation does harm.

Where a method is told of the objective, or has no training, all others are compared with that one
as well.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from tune_jobs.figures.adaptation_data import (
    CONDITIONED,
    JOINT,
    WORSE,
    Method,
    cells_of,
    color_and_style,
    geometric,
    interval,
    kind_of,
    load_methods,
    log_ratio,
    made_worse,
    ratio,
    untrained,
)
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "family",
    "method",
    "reference",
    "step",
    "difference",
    "difference_low",
    "difference_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "worse",
    "tasks",
    "seeds",
)

WORSE_AFTER = 3
"""Steps after which the share of tasks made worse is shown, if they were evaluated."""

DRAWN_AFTER = (0, 1, 3, 10)
"""Steps whose ratios are drawn; all are in the table."""

_ROW = 0.22
_WIDE = 3.0  # from this ratio of its ends on an axis has ticks at round factors


def collect(request: FigureRequest) -> list[Row]:
    """Compares methods in pairs of tasks with joint training, conditioned and untrained policies.

    Returns:
        One row for each family, method, reference and number of steps: ``difference`` is the mean
        over tasks of the method's cost over baseline less that of the reference after as many
        steps, mean over adaptations and runs, with its 95 % interval over tasks and meta-seeds;
        ``ratio`` is the geometric mean of the one over the other, with such an interval. The
        reference itself has neither. ``worse`` is the share of tasks and adaptations in which the
        cost is more than `WORSE` times that of the same policy without adaptation.

    Raises:
        InputError: if there are no rows, they do not belong together, or joint training is not
            among them or alone.
    """
    methods, _ = load_methods(request)
    rows: list[Row] = []
    for family in dict.fromkeys(method.family for method in methods):
        mine = [method for method in methods if method.family == family]
        reference = _reference(mine)
        told = [method for method in mine if method.kind == CONDITIONED]
        scratch = [method for method in mine if untrained(method.label)]
        trained = [method for method in mine if method.kind != JOINT and method not in scratch]
        for one in (reference, *told, *scratch):
            others = trained if one in scratch else [m for m in mine if m.kind != JOINT]
            for method in mine if one is reference else others:
                rows += _rows(method, one)
    if not any("difference" in row for row in rows):
        raise InputError(
            "these rows hold joint training alone; measure other runs to compare with it"
        )
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = [row for row in read_table(table, COLUMNS) if not untrained(row["reference"])]
    places = list(dict.fromkeys((row["family"], row["reference"]) for row in rows))
    chosen = [[row for row in rows if (row["family"], row["reference"]) == key] for key in places]
    lines = [_lines(some) for some in chosen]
    with styled():
        figure = new_figure(1.6 + _ROW * sum(len(some) + 3 for some in lines))
        panels = figure.subplots(
            len(places),
            2,
            squeeze=False,
            height_ratios=[len(some) + 2 for some in lines],
            width_ratios=[3, 1],
        )
        tasks = sorted({int(number(row, "tasks")) for row in rows})
        against = " and ".join(dict.fromkeys(map(_what, places)))
        headline(
            figure,
            f"Adaptation against {against}, in pairs of tasks",
            f"ratio of costs after the same steps, geometric mean over tasks, below 1 is "
            f"better; 95% intervals over tasks and training seeds; "
            f"{' and '.join(map(str, tasks))} held-out tasks",
        )
        for (left, right), place, some, mine in zip(panels, places, lines, chosen, strict=True):
            left.set_title(place[0])
            left.set_xlabel(
                f"over {_what(place)} (filled: the interval leaves out 1)", fontsize=9.5
            )
            _draw_ratios(left, some, mine)
            _draw_worse(right, mine)
    return figure


def _what(place: tuple[str, str]) -> str:
    """The reference of a family, in words."""
    return "joint training" if kind_of(place[1]) == JOINT else f"the {place[1]} policy"


def _reference(methods: Sequence[Method]) -> Method:
    """Joint training that was trained on the same family, if there are several."""
    found = [method for method in methods if method.kind == JOINT]
    if not found:
        raise InputError(
            f"the family {methods[0].family} has no rows of joint training to compare with; "
            f"measure a run with meta.inner_steps=0"
        )
    return min(found, key=lambda method: f"on {method.family}" not in method.label)


def _rows(method: Method, reference: Method) -> list[Row]:
    rows: list[Row] = []
    for step in method.steps:
        row: dict[str, str | float | int | bool] = {
            "family": method.family,
            "method": method.label,
            "reference": reference.label,
            "step": step,
            "seeds": method.num_seeds,
            "tasks": method.num_tasks,
        }
        if method is not reference and step in reference.steps:
            pair = (method.table(step, ratio), reference.table(step, ratio))
            if pair[0].shape[1] != pair[1].shape[1]:
                raise InputError(
                    f"the methods '{method.label}' and '{reference.label}' were measured on "
                    f"different tasks of {method.family}; measure both with the same metasched "
                    f"study"
                )
            row |= cells_of(interval(*pair), "difference")
            logs = (method.table(step, log_ratio), reference.table(step, log_ratio))
            row |= cells_of(geometric(*logs), "ratio")
        if step and 0 in method.steps:
            row |= cells_of(method.estimate(step, made_worse), "worse")
        rows.append(row)
    return rows


def _lines(rows: Sequence[Cells]) -> list[Cells]:
    """The rows that are drawn: those with a ratio after some of the steps.

    Methods without training lie far away, and are left to the table.
    """
    found = [row for row in rows if row["ratio"]]
    trained = [row for row in found if not untrained(row["method"])] or found
    steps = {int(row["step"]) for row in trained}
    shown = steps & set(DRAWN_AFTER) or steps
    return [row for row in trained if int(row["step"]) in shown]


def _draw_ratios(axes: "Axes", lines: Sequence[Cells], rows: Sequence[Cells]) -> None:
    """A line for each method and number of steps."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullLocator

    methods = list(dict.fromkeys(row["method"] for row in rows))
    axes.axvline(1.0, color=INK, linewidth=1.2, zorder=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.xaxis.set_minor_locator(NullLocator())
    for place, row in enumerate(lines):
        color, _ = color_and_style(row["method"], methods)
        value, low, high = (number(row, f"ratio{end}") for end in ("", "_low", "_high"))
        axes.hlines(place, low, high, color, linewidth=2.2, zorder=2)
        sure = high < 1 or low > 1
        axes.plot(
            value,
            place,
            marker="o",
            markersize=5,
            markeredgecolor=color,
            markerfacecolor=color if sure else "white",
            zorder=3,
        )
    low, high = axes.get_xlim()
    wide = high > _WIDE * low
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1, 1.5, 2, 3, 5, 7), numticks=12)
        if wide
        else MaxNLocator(6, steps=(1, 2, 5, 10))
    )
    names = [f"{row['method']}, {row['step']} step{'s' * (row['step'] != '1')}" for row in lines]
    axes.set_yticks(range(len(lines)), names, fontsize=8.5)
    axes.set_ylim(max(len(lines), 1) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _draw_worse(axes: "Axes", rows: Sequence[Cells]) -> None:
    """A bar for each method: the share of tasks that adaptation has made worse."""
    from matplotlib.ticker import PercentFormatter

    methods = list(dict.fromkeys(row["method"] for row in rows))
    steps = sorted({int(row["step"]) for row in rows if row.get("worse")})
    if not steps:
        axes.set_visible(False)
        return
    values: list[float] = []
    step = WORSE_AFTER if WORSE_AFTER in steps else steps[-1]
    for place, method in enumerate(methods):
        found = [row for row in rows if (row["method"], row["step"]) == (method, str(step))]
        if not found:
            continue
        value = number(found[0], "worse")
        values.append(value)
        axes.barh(place, value, color=color_and_style(method, methods)[0], height=0.6)
        axes.annotate(f" {value:.1%}", (value, place), fontsize=8.5, va="center")
    axes.set_yticks(range(len(methods)), methods, fontsize=8.5)
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel(f"tasks worse by {WORSE - 1:.0%}\nafter {step} steps", fontsize=9.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0.0, 1.45 * max(max(values), 0.05))
