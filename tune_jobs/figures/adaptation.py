"""Cost over that of the best heuristic against steps of adaptation: every method, by family."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.evaluation.intervals import jobset_interval
from tune_jobs.figures.adaptation_data import Method, Statistic, cells_of, load_arms, ratio
from tune_jobs.figures.adaptation_panels import draw_arms, grid_of_panels, measured_on
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, color_of, headline, styled
from tune_jobs.terminal.tables import Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "series",
    "family",
    "method",
    "step",
    "episodes",
    "value",
    "value_low",
    "value_high",
    "seeds",
    "tasks",
    "adaptations",
)

DRAWN = ("hold", "random")
"""Heuristics with a line of their own; the best of the others is where the ratio is 1."""


def collect(request: FigureRequest) -> list[Row]:
    """Sums up rows of `metasched study`.

    Returns:
        For each family, a row for each method and number of steps (``series`` is ``method``): the
        mean over meta-seeds, tasks and adaptations of cost over baseline, with its 95 % interval;
        and one for each heuristic.

    Raises:
        InputError: if there are no rows, or they do not belong together.
    """
    methods, heuristics = load_arms(request)
    rows = summarize_methods(methods, ratio)
    for family in dict.fromkeys(row["family"] for row in heuristics):
        for name in DRAWN:
            ratios = np.array(
                [
                    number(row, "ratio")
                    for row in heuristics
                    if (row["family"], row["method"]) == (family, name)
                ]
            )
            estimate = jobset_interval(ratios, np.ones(ratios.size))
            rows.append(
                {
                    "series": "heuristic",
                    "family": family,
                    "method": name,
                    **cells_of(estimate, "value"),
                    "tasks": ratios.size,
                }
            )
    return rows


def summarize_methods(
    methods: Sequence[Method], statistic: Statistic, objective: str = ""
) -> list[Row]:
    """A row for each method and number of steps: the mean of a statistic, with its interval."""
    return [
        {
            "series": "method",
            "family": method.family,
            "objective": objective,
            "method": method.label,
            "step": step,
            "episodes": episodes,
            **cells_of(method.estimate(step, statistic), "value"),
            "seeds": method.num_seeds,
            "tasks": method.num_tasks,
            "adaptations": int(method.ratios.shape[3]),
        }
        for method in methods
        for step, episodes in zip(method.steps, method.episodes, strict=True)
    ]


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, COLUMNS)
    families = list(dict.fromkeys(row["family"] for row in rows if row["series"] == "method"))
    with styled():
        figure, panels = grid_of_panels(len(families))
        headline(
            figure,
            "Adaptation to unseen tasks: cost over that of the best heuristic",
            f"{measured_on(rows)}; 1 is the best of Tetris*, SJF and Packer on each task",
        )
        for axes, family in zip(panels, families, strict=True):
            mine = [row for row in rows if row["family"] == family]
            axes.set_title(family)
            axes.set_ylabel("cost over the best heuristic's")
            axes.axhline(1.0, color=INK, linewidth=1.2, zorder=1)
            lines = [
                (number(row, "value"), row["method"], color_of(row["method"], learned=False))
                for row in mine
                if row["series"] == "heuristic"
            ]
            draw_arms(axes, [row for row in mine if row["series"] == "method"], lines)
    return figure
