"""Run times of real job logs: who foresees them best, by jobs seen, and what that is worth."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.core.durations import duration
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.style import MUTED, headline, label_ends, new_figure, style_of, styled
from tune_jobs.recipes.run_times import ALL, BASE, NUMBERS, PLAYED, SEEN, SHIFTED, TEXTS, TRUE
from tune_jobs.tables.frames import read_frame


def draw(table: Path) -> Figure:
    """Losses over those of the formula by jobs seen, and ratios of slowdowns."""
    rows = read_frame(table, TEXTS, NUMBERS)
    num_logs = rows["log"].nunique() - 1
    rows = rows[rows["log"] == ALL]
    names = [name for name in dict.fromkeys(rows["contender"]) if name != TRUE]
    with styled():
        figure = new_figure(4.6, width=13.0)
        left, *right = figure.subplots(1, 1 + len(PLAYED), width_ratios=[2.4, 1.0, 1.0])
        _draw_losses(left, rows[rows["policy"] == ""], names)
        for axes, policy in zip(right, PLAYED, strict=True):
            _draw_ratios(axes, rows[rows["policy"] == policy], [*names, TRUE])
            axes.set_title(policy)
        note = (
            f"each of {num_logs} logs by what was learned from the others; left: negative log "
            f"likelihood of a job's run time less that of {BASE}; right: mean bounded slowdown of "
            "a week over that by the users' estimates, geometric means over weeks, and mean wait, "
            "longest wait and utilization up to the last finish. Means and 95% intervals over "
            "logs; all at one bound on waits"
        )
        headline(figure, "Run times that are foreseen, and what that is worth", note)
    return figure


def _draw_losses(axes: Axes, rows: pd.DataFrame, names: Iterable[str]) -> None:
    """A curve for each contender; the users have changed places at its last point."""
    places = [*map(str, SEEN), SHIFTED]
    rows = rows[rows["seen"].isin(places)].assign(at=lambda some: some["seen"].map(places.index))
    curves = []
    for which, name in enumerate(names):
        mine = rows[rows["contender"] == name].sort_values("at")
        if name != BASE:
            color, style, _ = style_of(which)
            look = {"name": name, "color": color, "style": style, "marker": "o"}
            curves.append(Curve.of(mine, "at", "excess", **look))
    axes.axhline(0, color=MUTED, zorder=1)
    ends = draw_curves(axes, curves, "bars", apart=4)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_xticks(range(len(places)), [*map(str, SEEN), "users\nchange"], fontsize=9)
    axes.set_xlabel("at least so many jobs of the log before")
    axes.set_ylabel(f"nats over {BASE}; lower is better")
    heights = [y for curve in curves for y in curve.y] or [0.0]
    axes.set_ylim(min(heights) - 0.3, max(heights) + 0.3)
    label_ends(axes, ends)


def _draw_ratios(axes: Axes, rows: pd.DataFrame, names: list[str]) -> None:
    dots = rows.set_index("contender").loc[names]
    dots = dots.assign(color=[style_of(which)[0] for which in range(len(names))], marker="o")
    axes.axvline(1, color=MUTED, zorder=1)
    draw_dots(axes, dots, "ratio")
    price = zip(dots["mean_wait"], dots["longest_wait"], dots["to_end"], strict=True)
    name_lines(
        axes,
        [
            f"{name}  {ratio:.2f}\n{duration(wait)}, {duration(longest)}, {used:.1%}"
            for (name, ratio), (wait, longest, used) in zip(
                dots["ratio"].items(), price, strict=True
            )
        ],
    )
    axes.set_xlabel("slowdown ratio")
