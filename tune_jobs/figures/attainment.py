"""How often a policy is as good as the best heuristic of the moment, against load."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tune_jobs.comparing.comparison import BASELINES
from tune_jobs.figures import comparison
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.slowdown_by_load import compare_over_loads
from tune_jobs.figures.style import headline, new_figure, styled
from tune_jobs.terminal.tables import Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = ("attainment", "within_2")
"""Columns of a comparison, each with its interval."""

COLUMNS = (*comparison.COLUMNS, *(f"{name}{end}" for name in PANELS for end in ("_low", "_high")))

_HEIGHT = 7.4


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates all heuristics and the runs' policies at the loads of DeepRM's figure 4.

    Returns:
        The rows of `tune_jobs.comparing.comparison.compare`. ``attainment`` is the share of jobsets
        on which a policy's mean slowdown is at or below the best of `BASELINES` there; a jobset
        that it leaves unfinished is a miss. ``within_2`` is the share of jobs with a slowdown of at
        most 2.

    Raises:
        InputError: if a run cannot be used, or the jobs are those of a trace.
    """
    return compare_over_loads(request, "attainment")


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`, or that of a comparison at several loads.

    Raises:
        InputError: if the file does not hold one.
    """
    rows = read_table(table, COLUMNS)
    baselines = f"{', '.join(BASELINES[:-1])} and {BASELINES[-1]}"
    with styled():
        figure = new_figure(_HEIGHT)
        upper, lower = figure.subplots(2, 1, sharex=True)
        headline(
            figure,
            "How often policies do as well as the best heuristic",
            comparison.measured_on(rows),
        )
        upper.set_title(f"(a) jobsets on which none of {baselines} has a lower mean slowdown")
        lower.set_title("(b) jobs with a slowdown of at most 2")
        upper.set_ylabel("share of jobsets")
        lower.set_ylabel("share of jobs")
        for axes, column in zip((upper, lower), PANELS, strict=True):
            comparison.draw_lines(axes, rows, column)
            _scale_shares(axes, np.array([number(row, column) for row in rows]))
        comparison.label_loads(lower, rows)
        upper.set_xlabel("")
        for axes, column in zip((upper, lower), PANELS, strict=True):
            comparison.label_lines(axes, rows, column)
    return figure


def _scale_shares(axes: "Axes", shares: np.ndarray) -> None:
    """Percent, from 0 or from where the lowest share is, to all."""
    from matplotlib.ticker import PercentFormatter

    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    lowest = np.nanmin(shares) if np.isfinite(shares).any() else 0.0
    axes.set_ylim(0.0 if lowest < 0.4 else lowest - 0.05, 1.02)
