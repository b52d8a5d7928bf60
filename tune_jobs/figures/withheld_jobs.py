"""Which jobs are kept waiting though there is room for them, and how long (DeepRM, figure 7)."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tune_jobs.figures.comparison import POLICY, in_words, measured_on, read_policies
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.style import headline, new_figure, scale_values, styled
from tune_jobs.measuring.wording import on_jobs
from tune_jobs.recipes.withheld_jobs import ALL, OF_A_LENGTH
from tune_jobs.tables.frames import with_numbers

COLUMNS = (
    *("jobsets", *POLICY, "interval_over", "length", "num_jobs", "holding"),
    *(f"{name}{end}" for name in OF_A_LENGTH for end in ("", "_low", "_high")),
)

_HEIGHT = 4.5

_GAP = 3  # steps between the lengths of two jobs that a line still joins


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`."""
    rows = read_policies(table, COLUMNS, OF_A_LENGTH, ["holding"])
    of_all = rows[rows["length"] == ALL]
    lengths = with_numbers(rows[rows["length"] != ALL], ["length"])
    held = ", ".join(
        f"{row['key'] if row['is_learned'] else row['policy']} {row['holding']:.0%}"
        for _, row in of_all.iterrows()
    )
    titles = (
        ("(a) slowdown", "mean slowdown"),
        ("(b) jobs delayed", "share of jobs"),
        ("(c) delay", "mean steps of delay"),
    )
    with styled():
        figure = new_figure(_HEIGHT)
        panels = figure.subplots(1, 3)
        headline(
            figure,
            f"Jobs delayed although they fit, {on_jobs(rows.iloc[0])}",
            f"{measured_on(rows)}; time steps in which a job is delayed although it fits: {held}",
        )
        for axes, (title, label), column in zip(panels, titles, OF_A_LENGTH, strict=True):
            axes.set_title(title)
            axes.set_ylabel(label)
            axes.set_xlabel("job length (steps)")
            columns = ["length", *(f"{column}{end}" for end in ("", "_low", "_high"))]
            curves = []
            for _, row in of_all.iterrows():
                points = lengths[lengths["key"] == row["key"]][columns].to_numpy()
                # A point of nothing where many lengths have no jobs, so that no line crosses it.
                gaps = np.flatnonzero(np.diff(points[:, 0]) > _GAP) + 1
                points = np.insert(points, gaps, np.nan, axis=0)
                name = "\n".join(filter(None, (row["label"], in_words(row))))
                look = {"marker": row["marker"], "width": 2.0 if row["is_learned"] else 1.2}
                curves.append(Curve(name, row["color"], *points.T, **look))
            draw_curves(axes, curves, "bars")
        slowdown, share, steps = panels
        scale_values(slowdown, lengths["slowdown"].to_numpy())
        share.set_ylim(-0.03, 1.03)
        share.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        steps.set_ylim(bottom=0)
        handles = slowdown.get_lines()
        room = {"ncols": 3, "fontsize": 9, "columnspacing": 1.2, "handlelength": 1.5}
        figure.legend(handles=handles, loc="outside lower center", **room)
    return figure
