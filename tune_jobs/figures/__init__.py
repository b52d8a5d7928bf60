"""Figures: each collects recorded data into a CSV file, and is drawn from that file alone."""

from tune_jobs.figures.drawing import draw_comparison, draw_figure, report_figure
from tune_jobs.figures.registry import FIGURES, FigureKind, make_figure
from tune_jobs.recipes.request import FigureRequest

__all__ = [
    "FIGURES",
    "FigureKind",
    "FigureRequest",
    "draw_comparison",
    "draw_figure",
    "make_figure",
    "report_figure",
]
