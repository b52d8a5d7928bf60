"""Share of unseen tasks at or below the best heuristic's cost, against steps of adaptation."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tune_jobs.figures.adaptation import COLUMNS, summarize_methods
from tune_jobs.figures.adaptation_data import ATTAINED, attained, load_arms
from tune_jobs.figures.adaptation_panels import draw_arms, grid_of_panels, measured_on
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import headline, styled
from tune_jobs.terminal.tables import Row, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDS = ("value_low", "value_high")


def collect(request: FigureRequest) -> list[Row]:
    """Sums up rows of `metasched study`.

    Returns:
        As the figure ``adaptation``, but ``value`` is the share of tasks, over all adaptations,
        whose cost is at most `ATTAINED` times that of the best heuristic; its interval is cut at
        0 and 1.

    Raises:
        InputError: if there are no rows, or they do not belong together.
    """
    return [
        {**row, **{name: float(np.clip(float(row[name]), 0.0, 1.0)) for name in _ENDS}}
        for row in summarize_methods(load_arms(request)[0], attained)
    ]


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    from matplotlib.ticker import PercentFormatter

    rows = read_table(table, COLUMNS)
    families = list(dict.fromkeys(row["family"] for row in rows))
    with styled():
        figure, panels = grid_of_panels(len(families))
        headline(
            figure,
            "How many unseen tasks are met after adaptation",
            f"a task is met if its cost is at most {ATTAINED:g} times that of the best of Tetris*, "
            f"SJF and Packer; {measured_on(rows)}",
        )
        for axes, family in zip(panels, families, strict=True):
            axes.set_title(family)
            axes.set_ylabel("share of tasks")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
            mine = [row for row in rows if row["family"] == family]
            draw_arms(axes, mine, limits=(0.0, 1.03))
    return figure
