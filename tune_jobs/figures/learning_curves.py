"""Curves of training: a metric on validation jobsets, rewards, and what training costs.

The figure ``learning-curves`` shows the first two, ``cunha-fig5.6`` time, and ``cunha-fig5.7``
decisions of an episode.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.evaluation import (
    get_metric,
)
from tune_jobs.figures.kit.curves import (
    End,
    count_iterations,
    draw_curves,
    draw_levels,
    seeds_curve,
)
from tune_jobs.figures.kit.dots import draw_dots, name_lines, write_above
from tune_jobs.figures.style import (
    color_of,
    headline,
    label_ends,
    new_figure,
    scale_values,
    styled,
)
from tune_jobs.measuring.wording import described, on_jobs
from tune_jobs.recipes.learning_curves import COSTS, NUMBERS, TEXTS
from tune_jobs.tables.frames import read_frame

_HEIGHT = 4.0


def draw(table: Path) -> Figure:
    """Draws the CSV file of `collect`.

    Several seeds of one experiment are drawn as their mean, in a band from the lowest to the
    highest seed.
    """
    rows = read_frame(table, (*TEXTS, "metric", "jobsets"), NUMBERS)
    first = rows.iloc[0].to_dict()
    label = get_metric(first["metric"]).label
    heuristics = rows[rows["series"] == "heuristic"]
    runs = rows[rows["series"] == "run"]
    levels = []
    for key, some in heuristics.groupby("key", sort=False):
        star = "*" if "*" in some.iloc[0].get("policy", "") else ""
        level = float(some["value"].mean())
        levels.append((level, f"{key}{star}", color_of(key, learned=False)))
    with styled():
        figure = new_figure(_HEIGHT)
        left, right = figure.subplots(1, 2)
        headline(
            figure,
            f"Learning curves {on_jobs(first)}",
            f"{first['jobsets']} validation jobsets, {described(first)}; {_seeds_note(runs)}",
        )
        left.set_title(f"(a) {label}")
        left.set_ylabel(label)
        ends = draw_levels(left, levels)
        ends += _draw_experiments(left, runs, "value", width=2.2, marker="o")
        scale_values(left, rows["value"].to_numpy())
        label_ends(left, ends)
        right.set_title("(b) mean and maximum reward")
        right.set_ylabel("total reward")
        ends = _draw_experiments(right, runs, "return_mean", name="mean")
        ends += _draw_experiments(right, runs, "return_max", name="max", style=(0, (3, 1)))
        label_ends(right, ends)
    return figure


def _draw_experiments(
    axes: Axes, runs: pd.DataFrame, column: str, name: str = "", **look: Any
) -> list[End]:
    """A curve for each experiment; gives labels for `label_ends`: the name, or that of each."""
    curves = [
        seeds_curve(
            some, column, name=name or key, color=color_of(key, learned=True, place=place), **look
        )
        for place, (key, some) in enumerate(runs.groupby("key", sort=False))
    ]
    count_iterations(axes, runs["iteration"].max())
    return draw_curves(axes, curves)


def _seeds_note(runs: pd.DataFrame) -> str:
    """Says how many training seeds stand behind each curve."""
    counts = runs.groupby("key", sort=False)["seed"].nunique()
    if (counts == 1).all():
        return "one training seed"
    seeds = ", ".join(f"{key} {count}" for key, count in counts.items())
    return f"bands: all training seeds ({seeds})"


def draw_lengths(table: Path) -> Figure:
    """Draws decisions of an episode by iteration; more than needed are decisions to wait."""
    rows = read_frame(table, TEXTS, COSTS)
    with styled():
        figure = new_figure(_HEIGHT)
        axes = figure.subplots()
        headline(
            figure,
            "Length of episodes during training (Cunha, figure 5.7)",
            "Mean decisions of an episode, with a constant number of jobs: fewer decisions "
            f"mean less waiting by the policy; {_seeds_note(rows)}",
        )
        ends = _draw_experiments(axes, rows, "decisions_per_episode", width=2.2)
        scale_values(axes, rows["decisions_per_episode"].to_numpy())
        axes.set_ylabel("decisions of an episode")
        label_ends(axes, ends)
    return figure


def draw_times(table: Path) -> Figure:
    """Draws minutes for a million decisions, learning included, of each experiment."""
    rows = read_frame(table, TEXTS, (*COSTS, "seconds"))
    pace = rows.groupby(["key", "seed"], sort=False)[["seconds", "decisions"]].apply(_pace)
    by_key = (
        (pace * 1e6 / 60)
        .groupby("key", sort=False)
        .agg(minutes="mean", minutes_low="min", minutes_high="max")
    )
    by_key = by_key.sort_values("minutes", kind="stable").assign(
        color=[color_of(key, learned=True) for key in by_key.index], marker="o"
    )
    with styled():
        figure = new_figure(1.4 + 0.35 * len(by_key))
        axes = figure.subplots()
        headline(
            figure,
            "Time to train (Cunha, figure 5.6)",
            "Minutes per million decisions, sampling and learning, in the median "
            f"iteration; {_seeds_note(rows).replace('bands', 'lines')}",
        )
        draw_dots(axes, by_key, "minutes", size=6)
        texts = [f"{mean:.3g}" for mean in by_key["minutes"]]
        write_above(axes, by_key["minutes"], texts, size=9, offset=(7, 5), align="left")
        name_lines(axes, by_key.index, size=11, top=-0.7)
        axes.set_xlim(0, 1.1 * by_key["minutes_high"].max())
        axes.set_xlabel("minutes per million decisions")
    return figure


def _pace(run: pd.DataFrame) -> float:
    """Seconds of a decision: median over iterations but the first, which waits for the compiler."""
    steps = run.diff().iloc[1:] if len(run) > 1 else run
    return float(np.median(steps["seconds"] / steps["decisions"]))
