"""Figures: each collects recorded data into a CSV file, and is drawn from that file alone."""

from tune_jobs.figures.drawing import draw_comparison, draw_figure, report_figure
from tune_jobs.figures.registry import FIGURES, FigureKind, FigureRequest, make_figure

__all__ = [
    "FIGURES",
    "FigureKind",
    "FigureRequest",
    "draw_comparison",
    "draw_figure",
    "make_figure",
    "report_figure",
]
