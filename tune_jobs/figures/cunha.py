"""Cunha (2022): every rule and learned policies, by machine, job log and estimates."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from tune_jobs.figures.style import GRID, headline, new_figure, styled
from tune_jobs.tables.columns import COUNT, RATIO, SECONDS, SHARE, shown
from tune_jobs.tables.frames import read_frame

LOG_UNITS = {
    "processors": COUNT,
    "jobs": COUNT,
    "span": SECONDS,
    "load": SHARE,
    "median_run": SECONDS,
    "longest_run": SECONDS,
    "median_processors": COUNT,
    "estimate_over_run": RATIO,
    "exact_estimates": SHARE,
}
"""Columns behind the name of a log, and their units; `estimate_over_run` is a median."""

_LINE = 0.34  # inches


def draw_logs(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_frame(table, ("log",), LOG_UNITS)
    with styled():
        figure = new_figure(1.3 + _LINE * (1 + len(rows)), 10.5)
        axes = figure.subplots()
        headline(
            figure,
            "Job logs (Cunha, table 5.8)",
            "Jobs that fit the machine. load: submitted work relative to what the machine "
            "can do in the span of the log. Estimates are medians over run times; if all "
            "are exact, the log may have none",
        )
        axes.set_axis_off()
        drawn = axes.table(
            [
                [row["log"], *(shown(row[name], unit) for name, unit in LOG_UNITS.items())]
                for _, row in rows.iterrows()
            ],
            colLabels=["log", *(name.replace("_", "\n") for name in LOG_UNITS)],
            cellLoc="right",
            colLoc="right",
            edges="horizontal",
            bbox=Bbox.unit(),
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(9)
        for (line, column), cell in drawn.get_celld().items():
            cell.set_edgecolor(GRID)
            cell.get_text().set_fontweight("bold" if line == 0 else "normal")
            if column == 0:
                cell.get_text().set_horizontalalignment("left")
    return figure
