"""Methods beside references on the same tasks: joint training, and specialists of each task.

Where a method is conditioned on the objective, or has no training, all others are compared with
that one as well.
"""

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, ratio_interval, seeds_interval
from tune_jobs.figures.adaptation import draw_methods, side_means
from tune_jobs.figures.adaptation_data import (
    CONDITIONED,
    JOINT,
    WORSE,
    Method,
    color_and_style,
    geometric,
    kind_of,
    load_methods,
    log_ratio,
    made_worse,
    ratio,
    untrained,
)
from tune_jobs.figures.kit.curves import grid_of_panels
from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.style import INK, MUTED, headline, new_figure, styled
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, estimate_cells, read_frame
from tune_jobs.terminal.options import SPECIALISTS_TABLE

TEXTS = ("family", "method", "reference")
NUMBERS = (
    *("step", "difference", "difference_low", "difference_high"),
    *("ratio", "ratio_low", "ratio_high", "worse", "tasks", "seeds"),
)
WORSE_AFTER = 3
"""Steps after which the share of tasks made worse is shown, if they were evaluated."""

DRAWN_AFTER = (0, 1, 3, 10)
"""Steps whose ratios are drawn; all are in the table."""

SPECIALIST = "specialist"
OF_HEADROOM = ("step", "value", "value_low", "value_high", "closed", "tasks")

_STEP_HEIGHT, _METHOD_GAP, _FAMILY_GAP = 0.1, 0.12, 0.85  # inches
_NAME_CHARACTERS = 20  # of a line of a method's name
_WIDE = 3.0  # from this ratio of its ends on an axis has ticks at round factors


def collect_differences(request: FigureRequest) -> list[Row]:
    """Compares methods on the same tasks with joint training, conditioned and untrained policies.

    Returns:
        One row for each family, method, reference and number of steps: ``difference`` is the mean
        over tasks of the method's cost over baseline less that of the reference after as many
        steps, or after 0 if it was measured after no others, mean over adaptations and runs, with
        its 95 % interval over tasks and meta-seeds; ``ratio`` is the geometric mean of the one over
        the other, with such an interval. The reference itself has neither. ``worse`` is the share
        of tasks and adaptations in which the cost is more than `WORSE` times that of the same
        policy without adaptation.

    Raises:
        InputError: if there are no rows, they do not belong together, or joint training is not
            among them or alone.
    """
    methods, _ = load_methods(request)
    rows: list[Row] = []
    for family in dict.fromkeys(method.family for method in methods):
        mine = [method for method in methods if method.family == family]
        joint = [method for method in mine if method.kind == JOINT]
        if not joint:
            raise InputError(
                f"the family {family} has no rows of joint training to compare with; measure a "
                f"run that was trained with training.inner_steps=0"
            )
        # Of several, the one that was trained on this family.
        reference = min(joint, key=lambda method: f"on {family}" not in method.label)
        conditioned = [method for method in mine if method.kind == CONDITIONED]
        scratch = [method for method in mine if untrained(method.label)]
        learned = [method for method in mine if method not in joint]
        trained = [method for method in learned if method not in scratch]
        for method in mine:
            rows += _rows(method, reference)
        for other in conditioned:
            rows += [row for method in learned for row in _rows(method, other)]
        for other in scratch:
            rows += [row for method in trained for row in _rows(method, other)]
    if not any("difference" in row for row in rows):
        raise InputError(
            "these rows hold joint training alone; measure other runs to compare with it"
        )
    return rows


def _rows(method: Method, reference: Method) -> list[Row]:
    """A row for each number of steps."""
    rows: list[Row] = []
    for step in method.steps:
        row: dict[str, Any] = {
            "family": method.family,
            "method": method.label,
            "reference": reference.label,
            "step": step,
            "seeds": method.num_seeds,
            "tasks": method.num_tasks,
        }
        # A policy that takes no steps is compared with all others as it is.
        beside = 0 if reference.steps == (0,) else step
        if method is not reference and beside in reference.steps:
            if method.num_tasks != reference.num_tasks:
                raise InputError(
                    f"the methods '{method.label}' and '{reference.label}' were measured on "
                    f"different tasks of {method.family}; measure both with the same metasched "
                    f"study"
                )
            pair = (method.table(step, ratio), reference.table(beside, ratio))
            row |= estimate_cells("difference", seeds_interval(*pair))
            logs = (method.table(step, log_ratio), reference.table(beside, log_ratio))
            row |= estimate_cells("ratio", geometric(*logs))
        if step and 0 in method.steps:
            row |= estimate_cells("worse", seeds_interval(method.table(step, made_worse)))
        rows.append(row)
    return rows


def draw_differences(table: Path) -> Figure:
    """Draws the CSV file of `collect_differences`.

    For each family there is a panel for each trained reference, with a mark for each method and
    number of steps, and one for the shares of tasks that adaptation has made worse.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_frame(table, TEXTS, NUMBERS)
    rows = rows[~rows["reference"].map(untrained)]
    families = dict(list(rows.groupby("family", sort=False)))
    drawn = {family: _rows_drawn(mine) for family, mine in families.items()}
    most_steps = max(some["step"].nunique() for some in drawn.values())
    row_height = _STEP_HEIGHT * most_steps + _METHOD_GAP
    heights = [
        row_height * max(some["method"].nunique(), 2) + _FAMILY_GAP for some in drawn.values()
    ]
    columns = max(mine["reference"].nunique() for mine in families.values())
    references = rows["reference"].map(_in_words).unique()
    tasks = " and ".join(f"{count:g}" for count in np.unique(rows["tasks"]))
    with styled():
        figure = new_figure(1.2 + sum(heights))
        grid = figure.add_gridspec(
            len(families), columns + 1, height_ratios=heights, width_ratios=[3] * columns + [2]
        )
        for line, (family, mine) in enumerate(families.items()):
            panels: list[Axes] = []
            names = mine["reference"].unique()
            for place, reference in enumerate(names):
                end = columns if place == len(names) - 1 else place + 1
                panels.append(figure.add_subplot(grid[line, place:end]))
                some = drawn[family][drawn[family]["reference"] == reference]
                _draw_ratios(panels[-1], some, drawn[family], mine, row_height)
                panels[-1].set_xlabel(f"ratio to {_in_words(reference)}", fontsize=9.5)
                if place:
                    panels[-1].tick_params(labelleft=False)
            panels[0].set_title(family)
            _draw_worse(figure.add_subplot(grid[line, -1]), mine)
        headline(
            figure,
            f"Adaptation relative to {' and '.join(references)}, paired by tasks",
            "ratio of costs after the same steps (numbers at the bars), geometric mean "
            "over tasks, below 1 is better; filled: the 95% interval over tasks and "
            f"training seeds excludes 1; {tasks} held-out tasks",
        )
    return figure


def _in_words(reference: str) -> str:
    return "joint training" if kind_of(reference) == JOINT else f"the {reference} policy"


def _rows_drawn(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a family with a ratio after some of the steps.

    Methods without training lie far away, and are left to the table.
    """
    rows = rows[rows["ratio"].notna()]
    trained = rows[~rows["method"].map(untrained)]
    rows = trained if len(trained) else rows
    shown = rows["step"].isin(DRAWN_AFTER)
    return rows[shown] if shown.any() else rows


def _draw_ratios(
    axes: Axes, rows: pd.DataFrame, beside: pd.DataFrame, family: pd.DataFrame, row_height: float
) -> None:
    """A mark with its interval for each method and number of steps, of the rows of one reference.

    The methods and steps of all panels beside it have places, those of the family have colors.
    """
    methods, steps = beside["method"].unique().tolist(), np.unique(beside["step"])
    colors = {name: color_and_style(name, family["method"])[0] for name in methods}
    axes.axvline(1.0, color=INK, linewidth=1.2, zorder=1)
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:g}")
    shifts = np.searchsorted(steps, rows["step"]) - (len(steps) - 1) / 2
    lines = rows["method"].map(methods.index) + shifts * _STEP_HEIGHT / row_height
    rows = rows.assign(color=rows["method"].map(colors), marker="o")
    sure = (rows["ratio_high"] < 1) | (rows["ratio_low"] > 1)
    draw_dots(axes, rows[sure], "ratio", lines=lines[sure], size=4.5)
    draw_dots(axes, rows[~sure], "ratio", lines=lines[~sure], size=4.5, markerfacecolor="white")
    for step, end, line in zip(rows["step"], rows["ratio_high"], lines, strict=True):
        axes.annotate(
            f"{step:g}",
            (end, line),
            xytext=(3, 0),
            textcoords="offset points",
            color=MUTED,
            fontsize=6.5,
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3},
        )
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1, 1.5, 2, 3, 5, 7), numticks=12)
        if high > _WIDE * low
        else MaxNLocator(5, steps=(1, 2, 5, 10))
    )
    axes.tick_params(axis="x", labelsize=9.5)
    name_lines(axes, _wrapped(methods), top=-0.5)


def _wrapped(methods: Iterable[str]) -> list[str]:
    return [textwrap.fill(method, _NAME_CHARACTERS) for method in methods]


def _draw_worse(axes: Axes, rows: pd.DataFrame) -> None:
    """A bar for each method: the share of tasks that adaptation has made worse."""
    rows = rows[rows["worse"].notna()]
    if rows.empty:
        axes.set_visible(False)
        return
    steps = np.unique(rows["step"])
    step = WORSE_AFTER if WORSE_AFTER in steps else steps[-1]
    shares = rows[rows["step"] == step].groupby("method", sort=False)["worse"].first()
    colors = [color_and_style(name, shares.index)[0] for name in shares.index]
    axes.barh(range(len(shares)), shares, color=colors, height=0.6)
    for place, share in enumerate(shares):
        axes.annotate(f" {share:.1%}", (share, place), fontsize=8.5, va="center")
    name_lines(axes, _wrapped(shares.index), size=8.5, top=-0.5)
    axes.xaxis.set_major_locator(MaxNLocator(2, steps=(1, 2, 5, 10)))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(axis="x", labelsize=9.5)
    axes.set_xlabel(f"tasks worse by {WORSE - 1:.0%}\nafter {step:g} steps", fontsize=9.5)
    axes.set_xlim(0.0, 1.45 * max(shares.max(), 0.05))


def collect_headroom(request: FigureRequest) -> list[Row]:
    """Compares methods on the tasks that have specialists, policies trained for that task alone.

    Returns:
        For each family with specialists, a row for them, then one for each method and number of
        steps: ``value``, mean cost over baseline on these tasks, and ``closed``, the share of the
        difference between the unadapted joint policy and the specialists that lies between the
        unadapted joint policy and the method, with 95 % intervals (of ``closed`` over tasks alone).
        Each has the means of `SIDE_METRICS` on these tasks, as far as rows have them.

    Raises:
        InputError: if there are no rows, no specialists, or no joint training to compare with.
    """
    methods, _ = load_methods(request)
    rows: list[Row] = []
    for family in dict.fromkeys(method.family for method in methods):
        files = [Path(folder) / family / SPECIALISTS_TABLE for folder in request.rows]
        file = next(filter(Path.is_file, files), None)
        if file is not None:
            mine = [method for method in methods if method.family == family]
            rows += _rows_of_headroom(mine, read_frame(file, ("task",), ("ratio",)))
    if not rows:
        raise InputError(
            "there are no specialists; metasched study RUN --specialists N trains them"
        )
    return rows


def _rows_of_headroom(methods: Sequence[Method], of_specialists: pd.DataFrame) -> list[Row]:
    """The rows of a family."""
    specialists = of_specialists["ratio"].to_numpy()
    count = specialists.size
    joint = next((method for method in methods if method.kind == JOINT and 0 in method.steps), None)
    if joint is None or joint.num_tasks < count:
        raise InputError(
            f"the family {methods[0].family} has no rows of joint training on the specialists' "
            f"tasks"
        )
    before = joint.table(0, ratio)[:, :count].mean(axis=0)
    head: dict[str, Any] = {"family": joint.family, "tasks": count}
    value = estimate_cells("value", seeds_interval(specialists[None]))
    first = {"method": SPECIALIST, "step": 0, **value, "closed": 1.0}
    rows: list[Row] = [{**head, **first, **side_means(of_specialists)}]
    for method in methods:
        for step in method.steps:
            table = method.table(step, ratio)[:, :count]
            gained = Pooled.each(before - table.mean(axis=0))
            closed = ratio_interval(gained, Pooled.each(before - specialists))
            rows.append(
                {
                    **head,
                    "method": method.label,
                    "step": step,
                    **estimate_cells("value", seeds_interval(table)),
                    **estimate_cells("closed", closed),
                    **method.means_beside(step, count),
                }
            )
    return rows


def draw_headroom(table: Path) -> Figure:
    """Draws the CSV file of `collect_headroom`."""
    rows = read_frame(table, ("family", "method"), OF_HEADROOM)
    families = rows.groupby("family", sort=False)
    with styled():
        figure, panels = grid_of_panels(families.ngroups)
        headline(
            figure,
            "How close adaptation comes to specialists",
            "cost relative to the best heuristic; line: specialists, trained for each task "
            f"alone; {' and '.join(f'{count:g}' for count in np.unique(rows['tasks']))} "
            "held-out tasks; bars: 95% intervals",
        )
        for axes, (family, mine) in zip(panels, families, strict=True):
            is_specialist = mine["method"] == SPECIALIST
            floor = mine["value"][is_specialist].iloc[0]
            methods = mine[~is_specialist & ~mine["method"].map(untrained)]
            low, high = (end([floor, *methods["value"]]) for end in (min, max))
            room = 0.07 * (high - low)
            limits = (low - room, high + room)
            draw_methods(axes, family, methods, [(floor, "specialists", INK)], limits)
    return figure
