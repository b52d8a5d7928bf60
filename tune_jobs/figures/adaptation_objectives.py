"""Cost over that of the best heuristic against steps of adaptation: a panel for each objective."""

from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from tune_jobs.figures.adaptation import COLUMNS, summarize_methods
from tune_jobs.figures.adaptation_data import load_arms, ratio
from tune_jobs.figures.adaptation_panels import draw_arms, grid_of_panels, measured_on
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, headline, styled
from tune_jobs.terminal.tables import Row, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def collect(request: FigureRequest) -> list[Row]:
    """Sums up rows of `metasched study` by objective, in the families that have several.

    Returns:
        One row for each family, objective, method and number of steps, as those of the figure
        ``adaptation``.

    Raises:
        InputError: if there are no rows, they do not belong together, or no family has several
            objectives.
    """
    methods, _ = load_arms(request)
    rows: list[Row] = []
    for family in dict.fromkeys(method.family for method in methods):
        mine = [method for method in methods if method.family == family]
        objectives = sorted({name for method in mine for name in method.objectives})
        if len(objectives) < 2:
            continue
        for objective in objectives:
            rows += summarize_methods([method.on(objective) for method in mine], ratio, objective)
    if not rows:
        raise InputError("in these rows every family has a single objective; draw adaptation")
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, (*COLUMNS, "objective"))
    panels = list(dict.fromkeys((row["family"], row["objective"]) for row in rows))
    several = len({family for family, _ in panels}) > 1
    with styled():
        figure, axes_of = grid_of_panels(len(panels))
        headline(
            figure,
            "Adaptation by objective: cost over that of the best heuristic",
            f"{measured_on(rows)}; axes differ",
        )
        for axes, (family, objective) in zip(axes_of, panels, strict=True):
            mine = [row for row in rows if (row["family"], row["objective"]) == (family, objective)]
            title = objective.replace("_", " ")
            axes.set_title(f"{family}:\n{title}" if several else title)
            axes.set_ylabel("cost over the best heuristic's")
            axes.axhline(1.0, color=INK, linewidth=1.2, zorder=1)
            draw_arms(axes, mine)
    return figure
