"""Cost over that of the best heuristic against steps of adaptation: every arm, by family."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.evaluation.intervals import jobset_interval
from tune_jobs.figures.adaptation_data import Arm, Statistic, cells_of, load_arms, ratio
from tune_jobs.figures.adaptation_panels import draw_arms, grid_of_panels, measured_on
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import INK, color_of, headline, styled
from tune_jobs.tables import Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "series",
    "family",
    "arm",
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
    """Sums up rows of `metasched arms`.

    Returns:
        For each family, a row for each arm and number of steps (``series`` is ``arm``): the mean
        over meta-seeds, tasks and adaptations of cost over bar, with its 95 % interval; and one for
        each heuristic.

    Raises:
        InputError: if there are no rows, or they do not belong together.
    """
    arms, heuristics = load_arms(request)
    rows = summarize_arms(arms, ratio)
    for family in dict.fromkeys(row["family"] for row in heuristics):
        for name in DRAWN:
            ratios = np.array(
                [
                    number(row, "ratio")
                    for row in heuristics
                    if (row["family"], row["arm"]) == (family, name)
                ]
            )
            estimate = jobset_interval(ratios, np.ones(ratios.size))
            rows.append(
                {
                    "series": "heuristic",
                    "family": family,
                    "arm": name,
                    **cells_of(estimate, "value"),
                    "tasks": ratios.size,
                }
            )
    return rows


def summarize_arms(arms: Sequence[Arm], statistic: Statistic, objective: str = "") -> list[Row]:
    """A row for each arm and number of steps: the mean of a statistic, with its interval."""
    return [
        {
            "series": "arm",
            "family": arm.family,
            "objective": objective,
            "arm": arm.label,
            "step": step,
            "episodes": episodes,
            **cells_of(arm.estimate(step, statistic), "value"),
            "seeds": arm.num_seeds,
            "tasks": arm.num_tasks,
            "adaptations": int(arm.ratios.shape[3]),
        }
        for arm in arms
        for step, episodes in zip(arm.steps, arm.episodes, strict=True)
    ]


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, COLUMNS)
    families = list(dict.fromkeys(row["family"] for row in rows if row["series"] == "arm"))
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
                (number(row, "value"), row["arm"], color_of(row["arm"], learned=False))
                for row in mine
                if row["series"] == "heuristic"
            ]
            draw_arms(axes, [row for row in mine if row["series"] == "arm"], lines)
    return figure
