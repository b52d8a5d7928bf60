"""Run times of real job logs: who foresees them best, by jobs seen, and what that is worth."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.evaluation.intervals import Estimate, Pooled, jobset_interval
from tune_jobs.figures.kit.curves import Curve, draw_curves
from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.style import MUTED, headline, label_ends, new_figure, style_of, styled
from tune_jobs.recipes.run_times import NUMBERS, PLAYED, SEEN, SHIFTED, TEXTS, TRUE
from tune_jobs.tables.frames import read_frame

BASE = "shrunk means"
"""The formula that losses stand beside."""


def draw(table: Path) -> Figure:
    """Losses over those of the formula by jobs seen, and ratios of slowdowns."""
    rows = read_frame(table, TEXTS, NUMBERS)
    # A log is a unit: seeds are averaged within it.
    place = ["contender", "log", "seen", "policy"]
    rows = rows.groupby(place, sort=False)[["loss", "ratio"]].mean().reset_index()
    names = [name for name in dict.fromkeys(rows["contender"]) if name != TRUE]
    with styled():
        figure = new_figure(4.4, width=12.0)
        left, *right = figure.subplots(1, 1 + len(PLAYED), width_ratios=[1.7, 1.0, 1.0])
        _draw_losses(left, rows[rows["policy"] == ""], names)
        for axes, policy in zip(right, PLAYED, strict=True):
            _draw_ratios(axes, rows[rows["policy"] == policy], [*names, TRUE])
            axes.set_title(f"{policy} by foreseen run times")
        note = (
            f"each log by what was learned from the others; left: negative log likelihood of a "
            f"job's run time less that of {BASE}; right: mean bounded slowdown of a week over that "
            "by the users' estimates, geometric means over weeks. Means and 95% intervals over "
            f"{rows['log'].nunique()} logs; all at one bound on waits"
        )
        headline(figure, "Run times that are foreseen, and what that is worth", note)
    return figure


def _draw_losses(axes: Axes, rows: pd.DataFrame, names: Iterable[str]) -> None:
    """A curve for each contender; the users have changed places at its last point."""
    places = [str(seen) for seen in SEEN] + [SHIFTED]
    curves = []
    for which, name in enumerate(names):
        table = rows.pivot(index=["contender", "log"], columns="seen", values="loss")
        difference = table.loc[name] - table.loc[BASE]
        if name == BASE or not set(places) & set(table.columns):
            continue
        color, style, _ = style_of(which)
        there = [seen for seen in places if seen in difference]
        found = [_over_logs(difference[seen]) for seen in there]
        curves.append(
            Curve(
                name=name,
                color=color,
                style=style,
                marker="o",
                x=np.array([places.index(seen) for seen in there], np.float64),
                y=np.array([one.value for one in found]),
                low=np.array([one.low for one in found]),
                high=np.array([one.high for one in found]),
            )
        )
    axes.axhline(0, color=MUTED, zorder=1)
    ends = draw_curves(axes, curves, "bars", apart=4)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_xticks(range(len(places)), [*(f"{seen:,}+" for seen in SEEN), "users\nchange"])
    axes.set_xlabel("jobs of the log before")
    axes.set_ylabel(f"nats over {BASE}; lower is better")
    axes.set_ylim(min(-0.7, axes.get_ylim()[0]), 0.7)
    label_ends(axes, ends)


def _draw_ratios(axes: Axes, rows: pd.DataFrame, names: list[str]) -> None:
    found = [_over_logs(np.log(rows["ratio"][rows["contender"] == name])) for name in names]
    looks = [style_of(which) for which in range(len(names))]
    dots = pd.DataFrame(
        {
            "ratio": np.exp([one.value for one in found]),
            "ratio_low": np.exp([one.low for one in found]),
            "ratio_high": np.exp([one.high for one in found]),
            "color": [color for color, _, _ in looks],
            "marker": "o",
        }
    )
    axes.axvline(1, color=MUTED, zorder=1)
    draw_dots(axes, dots, "ratio")
    name_lines(axes, [f"{name}  {one:.2f}" for name, one in zip(names, dots["ratio"], strict=True)])
    axes.set_xlabel("slowdown over that by estimates")


def _over_logs(values: pd.Series) -> Estimate:
    return jobset_interval(Pooled.each(values.dropna().to_numpy(np.float64)))
