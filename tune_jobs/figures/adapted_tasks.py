"""Single tasks as an image: a bar for a policy after each number of steps, and each heuristic."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tune_jobs.figures.style import INK, WIDTH, color_of, headline, new_figure, styled
from tune_jobs.terminal.tables import Cells, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("task", "label", "jobsets", "step", "policy", "cost", "ratio", "unfinished")

_BAR_HEIGHT = 0.32  # inches
_LEARNED_TINTS = (0.45, 1.0)  # opacity of the first and the last step


def draw(table: Path) -> "Figure":
    """Draws the CSV file of rows of `tune_jobs.adapting.table.tabulate`, a panel for each task.

    Raises:
        InputError: if the file does not hold them.
    """
    rows = read_table(table, COLUMNS)
    tasks = [list(group) for _, group in groupby(rows, key=lambda row: row["task"])]
    columns = min(2, len(tasks))
    lines = -(-len(tasks) // columns)
    most = max(map(len, tasks))
    with styled():
        figure = new_figure(1.1 + lines * (0.75 + _BAR_HEIGHT * most), WIDTH * (1 + columns) / 2)
        panels = list(figure.subplots(lines, columns, squeeze=False).flat)
        for axes, task in zip(panels, tasks, strict=False):
            _draw_task(axes, task)
        for axes in panels[len(tasks) :]:
            axes.set_visible(False)
        headline(
            figure,
            "Cost before and after adaptation to a task",
            f"Bars: cost over that of the best baseline. Beside them the cost "
            f"itself, a mean over {int(number(rows[0], 'jobsets')):,} held-out jobsets of the "
            "task. One policy and one adaptation, so no intervals. Lower is better",
        )
    return figure


def _draw_task(axes: "Axes", rows: Sequence[Cells]) -> None:
    num_adapted = sum(bool(row["step"]) for row in rows)
    low, high = _LEARNED_TINTS
    for place, row in enumerate(rows):
        learned = bool(row["step"])
        share = place / max(1, num_adapted - 1)
        axes.barh(
            place,
            number(row, "ratio"),
            height=0.7,
            color=color_of(row["policy"], learned),
            alpha=low + (high - low) * share if learned else 1.0,
        )
        left = number(row, "unfinished")
        cut = f", {left:,.0f} jobs unfinished" if left else ""
        axes.annotate(
            f"{number(row, 'cost'):.4g}{cut}",
            (number(row, "ratio"), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        )
    axes.axvline(1.0, color=INK, linewidth=1.2)
    axes.set_title(f"{rows[0]['task']}, {rows[0]['label']}", loc="left", fontsize=10)
    axes.set_yticks(range(len(rows)), [row["policy"] for row in rows])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.22)
