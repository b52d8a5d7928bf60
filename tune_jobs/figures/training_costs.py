"""What training costs: time (Cunha, figure 5.6), and decisions of an episode (figure 5.7)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cluster_env.core.errors import InputError
from tune_jobs.comparing.trained_runs import find_runs, group_by_experiment
from tune_jobs.figures.learning_curves import curve, experiments, read_run, seeds_note
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.style import (
    color_of,
    count_iterations,
    headline,
    label_ends,
    new_figure,
    scale_values,
    styled,
)
from tune_jobs.runs.history import KEY
from tune_jobs.terminal.tables import Cells, Row, number, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("series", "key", "seed", "iteration", "decisions_per_episode", "decisions", "seconds")

_HEIGHT = 4.0
_MILLION = 1e6


@dataclass(frozen=True)
class TrainingCosts:
    """A figure of what runs recorded of themselves.

    Attributes:
        curves: whether it shows decisions of an episode by iteration, and else time by experiment.
    """

    curves: bool

    def collect(self, request: FigureRequest) -> list[Row]:
        """Reads the runs' metrics, which may be of different tasks.

        Returns:
            One row for each iteration of each run: decisions of an episode, on average; and all
            decisions and seconds of training until then.

        Raises:
            InputError: if there is no run, or one has recorded nothing or is of meta-training.
        """
        if not request.runs:
            raise InputError("this figure needs runs: give them with --runs, as runs/MY_RUN")
        runs = [read_run(path) for path in find_runs(request.runs)]
        rows: list[Row] = []
        for key, group in group_by_experiment(runs):
            for run in group:
                seconds = 0.0
                head: Row = {"series": "run", "key": key, "seed": run.config.seed}
                for one in run.rows:
                    seconds += one.get("time/iteration_s", 0.0)
                    cells = {
                        "iteration": one.get(KEY, math.nan),
                        "decisions_per_episode": one.get("train/decisions_per_episode", math.nan),
                        "decisions": one.get("total/decisions", math.nan),
                        "seconds": seconds,
                    }
                    rows.append({**head, **cells})
        return rows

    def draw(self, table: Path) -> "Figure":
        """Draws the CSV file of `collect`.

        Raises:
            InputError: if the file does not hold it.
        """
        rows = read_table(table, COLUMNS)
        return _draw_lengths(rows) if self.curves else _draw_times(rows)


def _draw_lengths(rows: list[Cells]) -> "Figure":
    """Decisions of an episode by iteration; more than needed are decisions to wait."""
    with styled():
        figure = new_figure(_HEIGHT)
        axes = figure.subplots()
        headline(
            figure,
            "Length of episodes while training (Cunha, figure 5.7)",
            f"Mean decisions of an episode, whose jobs are as many as ever: the fewer, the less "
            f"the policy waits; {seeds_note(rows)}",
        )
        labels, values = [], [1.0]
        for place, (key, some) in enumerate(experiments(rows).items()):
            x, mean, low, high = curve(some, "decisions_per_episode")
            color = color_of(key, learned=True, place=place)
            axes.plot(x, mean, color=color, linewidth=2.2)
            axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            labels.append((float(mean[-1]), key, color))
            values = [*(values if len(values) > 1 else []), *low, *high]
        scale_values(axes, np.array(values))
        count_iterations(axes)
        axes.set_ylabel("decisions of an episode")
        label_ends(axes, labels)
    return figure


def _draw_times(rows: list[Cells]) -> "Figure":
    """Minutes for a million decisions, learning included, of each experiment."""
    minutes: dict[str, list[float]] = {}
    for key, some in experiments(rows).items():
        seeds: dict[str, list[tuple[float, float]]] = {row["seed"]: [] for row in some}
        for row in some:
            seeds[row["seed"]].append((number(row, "seconds"), number(row, "decisions")))
        minutes[key] = [_pace(points) * _MILLION / 60 for points in seeds.values()]
    order = sorted(minutes, key=lambda key: float(np.mean(minutes[key])))
    with styled():
        figure = new_figure(1.4 + 0.35 * len(order))
        axes = figure.subplots()
        headline(
            figure,
            "Time to train (Cunha, figure 5.6)",
            f"Minutes for a million decisions, sampling and learning: the median iteration; "
            f"{seeds_note(rows).replace('bands', 'lines')}",
        )
        for line, key in enumerate(order):
            values, color = minutes[key], color_of(key, learned=True)
            axes.hlines(line, min(values), max(values), color, linewidth=2)
            axes.plot(np.mean(values), line, "o", color=color)
            axes.annotate(
                f"{np.mean(values):.3g}",
                (float(np.mean(values)), line),
                xytext=(7, 5),
                textcoords="offset points",
                fontsize=9,
            )
        axes.set_yticks(range(len(order)), order)
        axes.set_ylim(len(order) - 0.5, -0.7)
        axes.set_xlim(left=0)
        axes.margins(x=0.15)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("minutes for a million decisions")
    return figure


def _pace(points: Sequence[tuple[float, float]]) -> float:
    """Seconds of a decision: median over iterations but the first, which waits for the compiler."""
    seconds, decisions = np.array(points).T
    if len(points) == 1:
        return float(seconds[0] / decisions[0])
    return float(np.median(np.diff(seconds) / np.diff(decisions)))


TIME = TrainingCosts(curves=False)
LENGTH = TrainingCosts(curves=True)
