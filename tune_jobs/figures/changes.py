"""What-ifs as images: waits now and then, and the change by size."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tune_jobs.figures.kit.bars import scale_times
from tune_jobs.figures.kit.clock import time_unit
from tune_jobs.figures.style import INK, MUTED, PALETTE, new_figure, styled
from tune_jobs.tables.frames import read_frame


def draw_changes(table: Path) -> Figure:
    """Draws what `tune_jobs.replaying.effect_sheets.points` collected in a CSV file.

    Raises:
        InputError: if the file cannot be read.
    """
    rows = read_frame(table, ("panel", "series", "label"), ("x", "y", "low", "high"))
    with styled():
        figure = new_figure(4.2, width=10.0)
        waits, sizes = figure.subplots(1, 2)
        shown = rows[rows["panel"] == "waits"]
        for (name, part), color in zip(
            shown.groupby("series", sort=False), (INK, PALETTE[0]), strict=True
        ):
            waits.plot(np.maximum(part["x"], 1), part["y"], color=color, label=name)
        scale_times(waits, "x")
        waits.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        waits.set_ylim(0, 1.02)
        waits.set_title("Share of jobs that wait at most as long")
        waits.legend(fontsize=9)
        part = rows[rows["panel"] == "sizes"]
        unit, name = time_unit(float(part[["y", "low", "high"]].abs().max().max()))
        ends = np.vstack([part["y"] - part["low"], part["high"] - part["y"]]) / unit
        sizes.bar(part["label"], part["y"] / unit, 0.6, color=PALETTE[0])
        if np.isfinite(ends).all():
            sizes.errorbar(
                part["label"],
                part["y"] / unit,
                np.maximum(ends, 0),
                color=INK,
                fmt="none",
                capsize=4,
            )
        sizes.axhline(0, color=MUTED, linewidth=0.8)
        sizes.set_title(f"Change of the mean wait by size, {name}")
        return figure
