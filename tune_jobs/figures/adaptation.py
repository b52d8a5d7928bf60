"""Adaptation, step by step: every method's cost over the best baseline's, and its win rate."""

import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, jobset_interval, seeds_interval
from cluster_env.worlds import get_spec
from tune_jobs.figures.adaptation_data import (
    SIDE_METRICS,
    WIN_RATIO,
    Method,
    Statistic,
    color_and_style,
    geometric,
    load_methods,
    log_ratio,
    ratio,
    untrained,
    won,
)
from tune_jobs.figures.kit.curves import Curve, End, draw_curves, draw_levels, grid_of_panels
from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.style import (
    INK,
    MUTED,
    color_of,
    headline,
    label_ends,
    new_figure,
    styled,
)
from tune_jobs.recipes.learning_curves import MOST_LINES
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, estimate_cells, read_frame, with_numbers

TEXTS = ("series", "family", "objective", "method")
NUMBERS = ("step", "episodes", "value", "value_low", "value_high", "seeds", "tasks", "adaptations")

_NEAR = 0.5  # how far above the others, in units of their range, untrained methods are followed
_NOTE_CHARACTERS = 52
_NOTE_SIZE = 8.0  # points
_APART = 3.0  # points between the bars of two methods
_MANY_STEPS = 20  # from here on the axis of steps is logarithmic

_LOW, _HIGH = 0.5, 1.6  # of costs by objective; beyond this range a mark is an arrow at the edge
_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6)
_HOLLOW: dict[str, Any] = {"markerfacecolor": "white"}
_METHOD_HEIGHT, _GAP = 0.13, 0.2  # inches


def collect(
    request: FigureRequest,
    statistic: Statistic = ratio,
    by_objective: bool = False,
    with_heuristics: bool = False,
) -> list[Row]:
    """Sums up rows of `metasched study`.

    Args:
        request: names the rows.
        statistic: of the ratio of cost to baseline.
        by_objective: whether each objective of a family has rows of its own.
        with_heuristics: whether heuristics that are no baselines have rows.

    Returns:
        For each family, or objective of one, a row for each method and number of steps (``series``
        is ``method``): the mean of the statistic over meta-seeds, tasks and adaptations, with its
        95 % interval, and ``geometric``, where it is the ratio, that of its logarithms; one for
        each heuristic that is drawn; and one for the best baselines, whose ratio is 1 (``series``
        is ``baseline``). Each has the means of `SIDE_METRICS` as far as rows have them.

    Raises:
        InputError: if there are no rows, they do not belong together, or each family has a single
            objective where objectives have rows.
    """
    methods, heuristics = load_methods(request)
    if by_objective:
        methods = _by_objective(methods)
    rows: list[Row] = []
    for method in methods:
        for step, episodes in zip(method.steps, method.episodes, strict=True):
            cells = estimate_cells("value", seeds_interval(method.table(step, statistic)))
            if statistic is won:  # Student's interval over seeds knows no bounds
                for end in ("value_low", "value_high"):
                    cells[end] = float(np.clip(float(cells[end]), 0.0, 1.0))
            if statistic is ratio:
                cells |= estimate_cells("geometric", geometric(method.table(step, log_ratio)))
            rows.append(
                {
                    "series": "method",
                    "family": method.family,
                    "objective": method.objectives[0] if by_objective else "",
                    "method": method.label,
                    "step": step,
                    "episodes": episodes,
                    **cells,
                    "seeds": method.num_seeds,
                    "tasks": method.num_tasks,
                    "adaptations": int(method.ratios.shape[3]),
                    **method.means_beside(step),
                }
            )
    if with_heuristics and len(heuristics):
        rows += rows_of_heuristics(heuristics)
    if {"best_heuristic", "policy"} <= {*heuristics}:
        best = heuristics[heuristics["best_heuristic"] == heuristics["policy"]]
        place = ["family", "objective"] if by_objective else ["family"]
        for names, some in best.groupby(place, sort=False):
            head = {"series": "baseline", **dict(zip(place, names, strict=True))}
            cells = {"method": "best baseline", "value": 1.0, "tasks": len(some)}
            rows.append({**head, **cells, **side_means(some)})
    return rows


def _by_objective(methods: Sequence[Method]) -> list[Method]:
    """The methods on the tasks of each objective, in families that have several."""
    split: list[Method] = []
    for family in dict.fromkeys(method.family for method in methods):
        mine = [method for method in methods if method.family == family]
        objectives = sorted({name for method in mine for name in method.objectives})
        if len(objectives) > 1:
            split += [method.on(objective) for objective in objectives for method in mine]
    if not split:
        raise InputError("in these rows every family has a single objective; draw adaptation")
    return split


def rows_of_heuristics(heuristics: pd.DataFrame) -> list[Row]:
    """A row for each family and each heuristic that is no baseline of the world.

    The best of those is what 1 stands for, unless a family names others: it then has rows of them.
    None where a family has more of them than lines can be told apart.
    """
    named = heuristics.get("baseline", pd.Series("", heuristics.index))
    # Rows of when no other world was there do not name them.
    known = heuristics["method"].isin(get_spec("deeprm").baselines)
    is_baseline = (named == "1") | ((named == "") & known)
    others = with_numbers(heuristics[~is_baseline], ["ratio"])
    counts = others.groupby("family")["method"].nunique()
    rows: list[Row] = []
    for (family, method), some in others.groupby(["family", "method"], sort=False):
        if counts[family] <= MOST_LINES:
            value = jobset_interval(Pooled.each(some["ratio"].to_numpy()))
            rows.append(
                {
                    **{"series": "heuristic", "family": family, "method": method},
                    **estimate_cells("value", value),
                    "tasks": len(some),
                    **side_means(some),
                }
            )
    return rows


def side_means(rows: pd.DataFrame) -> dict[str, float]:
    """Means of the side metrics that rows have."""
    names = [name for name in SIDE_METRICS if name in rows and rows[name].iloc[0]]
    numbers = with_numbers(rows, names)
    return {name: float(np.mean(numbers[name].to_numpy())) for name in names}


def draw(table: Path, title: str, note: str, share: bool = False) -> Figure:
    """Draws the CSV file of `collect`: a panel for each family, with a curve for each method.

    The note is what small print says of the statistic, which may be a share from 0 to 1.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_frame(table, TEXTS, NUMBERS)
    families = rows.groupby("family", sort=False)
    with styled():
        figure, panels = grid_of_panels(families.ngroups)
        headline(figure, title, f"{_measured_on(rows)}; {note}")
        for axes, (family, mine) in zip(panels, families, strict=True):
            if share:
                axes.set_ylabel("share of tasks")
                axes.yaxis.set_major_formatter(PercentFormatter(1.0))
            else:
                axes.set_ylabel("cost / best baseline")
                axes.axhline(1.0, color=INK, linewidth=1.2, zorder=1)
            heuristics = mine[mine["series"] == "heuristic"]
            levels = [
                (value, name, color_of(name, learned=False))
                for value, name in zip(heuristics["value"], heuristics["method"], strict=True)
            ]
            methods = mine[mine["series"] == "method"]
            draw_methods(axes, family, methods, levels, (0.0, 1.03) if share else None)
    return figure


def _measured_on(rows: pd.DataFrame) -> str:
    """On what the numbers rest: tasks, adaptations and meta-training seeds."""
    methods = rows[rows["series"] == "method"]
    ranges = {
        name: " to ".join(f"{end:g}" for end in sorted({methods[name].min(), methods[name].max()}))
        for name in ("tasks", "adaptations", "seeds")
    }
    return (
        f"{ranges['tasks']} held-out tasks, {ranges['adaptations']} adaptations of each, "
        f"{ranges['seeds']} training seeds of a method; bars: 95% intervals over tasks and "
        f"training seeds"
    )


def draw_methods(
    axes: Axes,
    title: str,
    rows: pd.DataFrame,
    levels: Sequence[End] = (),
    limits: tuple[float, float] | None = None,
) -> None:
    """A curve for each method with bars for its intervals, and its name at its end.

    Methods that begin without training are far above all others at first. The y axis does not
    follow them, and a note under the title says what lies beyond it. Rows have ``method``,
    ``step``, ``value`` and the ends of its interval; with ``episodes`` the axis says how many a
    step has.
    """
    names = rows["method"].unique().tolist()
    curves = []
    for name in names:
        color, style = color_and_style(name, names)
        look = {"name": name, "color": color, "style": style, "marker": "o"}
        curves.append(Curve.of(rows[rows["method"] == name], "step", "value", **look))
    low, high = limits or _limits(curves)
    # Bars side by side: bands over each other hide which interval belongs to which line.
    ends = draw_curves(axes, curves, "bars", apart=_APART)
    ends += draw_levels(axes, [level for level in levels if level[0] <= high])
    steps = np.unique(rows["step"])
    last = max(steps[-1], steps[0] + 1)
    many = last > _MANY_STEPS
    if many:
        axes.set_xscale("symlog", linthresh=1, linscale=0.5)
    axes.set_xticks(steps, [f"{step:g}" for step in steps])
    axes.minorticks_off()
    axes.set_xlim(steps[0] - (0.4 if many else 0.08 * last), 1.12 * last)
    later = rows[rows["step"] > 0]
    each = (later["episodes"] / later["step"]).unique() if "episodes" in rows else []
    axes.set_xlabel(
        f"steps of adaptation{f', {each[0]:g} episodes each' if len(each) == 1 else ''}"
    )
    axes.set_ylim(low, high)
    beyond = [
        f"{one.name} {one.y[0]:.2f} to {one.y[-1]:.2f}" for one in curves if max(one.y) > high
    ]
    beyond += [f"{name} {height:.2f}" for height, name, _ in levels if height > high]
    whole = (text.replace(" ", "\N{NO-BREAK SPACE}") for text in beyond)
    lines = textwrap.wrap(f"off the axis: {', '.join(whole)}", _NOTE_CHARACTERS) if beyond else []
    axes.annotate(
        "\n".join(lines),
        (0.0, 1.0),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        color=MUTED,
        fontsize=_NOTE_SIZE,
        va="bottom",
    )
    axes.set_title(title, pad=6 + 1.3 * _NOTE_SIZE * len(lines))
    label_ends(axes, [end for end in ends if end[0] <= high], size=8.5)


def _limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Ends of the y axis: all values, of methods without training the last one alone, if near."""
    values = [value for one in curves if not untrained(one.name) for value in one.y]
    if values:
        near = max(values) + _NEAR * (max(values) - min(values))
        values += [one.y[-1] for one in curves if untrained(one.name) and one.y[-1] <= near]
    else:
        values = [value for one in curves for value in one.y]
    room = max(0.07 * float(np.ptp(values)), 0.01)
    return min(values) - room, max(values) + 2 * room


def draw_objectives(table: Path) -> Figure:
    """Draws the CSV file of `collect` by objective.

    There is a group for each objective of a family, and in it a line for each method, from the cost
    before adaptation (hollow) to that after the most steps (filled, with its interval).
    """
    rows = read_frame(table, TEXTS, NUMBERS)
    rows = rows[rows["series"] == "method"]
    methods = rows["method"].unique().tolist()
    groups = rows.groupby(["family", "objective"], sort=False)
    names = [f"{family}:\n{objective.replace('_', ' ')}" for family, objective in groups.groups]
    height = _METHOD_HEIGHT * len(methods) + _GAP
    # Each method at its first and its last step.
    marks = rows.assign(group=groups.ngroup()).sort_values(["group", "method"], kind="stable")
    first, last = (
        marks.drop_duplicates(["group", "method"], keep=end).reset_index()
        for end in ("first", "last")
    )
    order = last["method"].map(methods.index) - (len(methods) - 1) / 2
    lines = last["group"] + order * _METHOD_HEIGHT / height
    colors = [color_and_style(method, methods)[0] for method in last["method"]]
    low, high = (last[end].clip(_LOW, _HIGH) for end in ("value_low", "value_high"))
    with styled():
        figure = new_figure(1.7 + height * len(names))
        axes = figure.subplots()
        headline(
            figure,
            "Adaptation by objective: cost relative to the best baseline",
            f"{_measured_on(rows)}. Hollow: before adaptation; filled: after the most steps "
            f"(right); arrows: beyond the axis. 1 is the best baseline on each task",
        )
        for place in range(1, len(names), 2):
            axes.axhspan(place - 0.5, place + 0.5, color="#f5f5f5", zorder=0)
        axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
        axes.hlines(lines, low, high, colors, linewidth=3, alpha=0.4)
        clipped = [ends["value"].clip(_LOW, _HIGH) for ends in (first, last)]
        axes.hlines(lines, clipped[0], clipped[1], colors, linewidth=0.9)
        for ends, values, look in zip((first, last), clipped, (_HOLLOW, {}), strict=True):
            markers = np.select([ends["value"] > _HIGH, ends["value"] < _LOW], [">", "<"], "o")
            marks = pd.DataFrame({"value": values, "color": colors, "marker": markers})
            draw_dots(axes, marks, "value", lines=lines, **look)
        for step, line in zip(last["step"], lines, strict=True):
            axes.annotate(
                f"{step:g}",
                (1.01, line),
                xycoords=axes.get_yaxis_transform(),
                color=MUTED,
                fontsize=7.5,
                va="center",
                annotation_clip=False,
            )
        name_lines(axes, names, size=9.5, top=-0.5)
        axes.set_xscale("log")
        axes.set_xlim(_LOW * 0.98, _HIGH * 1.02)
        axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axes.minorticks_off()
        axes.set_xlabel("cost / best baseline")
        handles = [
            axes.plot([], [], color=color_and_style(name, methods)[0], marker="o", label=name)[0]
            for name in methods
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=9.5)
    return figure


collect_by_family = partial(collect, with_heuristics=True)
draw_by_family = partial(
    draw,
    title="Adaptation to unseen tasks: cost relative to the best baseline",
    note="1 is the best baseline on each task",
)
collect_by_objective = partial(collect, by_objective=True)
collect_win_rates = partial(collect, statistic=won)
draw_win_rates = partial(
    draw,
    title="Share of unseen tasks on which methods match the best baseline",
    note=f"a task counts if the cost is at most {WIN_RATIO:g} times the best baseline's",
    share=True,
)
