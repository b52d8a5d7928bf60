"""Curves of training: a metric on validation jobsets, rewards, and what training costs.

The figure ``learning-curves`` shows the first two, ``cunha-fig5.6`` time, and ``cunha-fig5.7``
decisions of an episode.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import (
    PolicyGroup,
    compare_policies,
    get_metric,
    tune,
    tuned_numbers,
)
from cluster_env.task import Task
from cluster_env.worlds import get_heuristic
from meta.maml.options import MAMLOptions
from rllib_configs.schema import ExperimentConfig
from tune_jobs.figures.kit.curves import (
    End,
    count_iterations,
    draw_curves,
    draw_levels,
    seeds_curve,
)
from tune_jobs.figures.kit.dots import draw_dots, name_lines, write_above
from tune_jobs.figures.registry import FigureRecipe, FigureRequest
from tune_jobs.figures.style import (
    color_of,
    headline,
    label_ends,
    new_figure,
    scale_values,
    styled,
)
from tune_jobs.measuring.trained_runs import find_runs, group_by_experiment
from tune_jobs.measuring.wording import described, jobs_of, on_jobs
from tune_jobs.runs.directory import open_run
from tune_jobs.runs.history import KEY
from tune_jobs.runs.history import MetricRow as Iteration
from tune_jobs.tables.frames import Row, read_frame

TEXTS = ("series", "key", "seed")
NUMBERS = ("iteration", "value", "return_mean", "return_max")
COSTS = {
    "iteration": KEY,
    "decisions_per_episode": "train/decisions_per_episode",
    "decisions": "total/decisions",
}
CELLS = {"unfinished": "eval/unfinished"} | {
    name: f"train/{name}" for name in ("return_mean", "return_max")
}

MOST_LINES = 8
"""Heuristics that lines can be told apart of."""

_HEIGHT = 4.0


@dataclass(frozen=True)
class Recorded:
    """What a run has written down."""

    path: Path
    config: ExperimentConfig
    rows: list[Iteration]


def read_runs(request: FigureRequest, of_meta: bool = False) -> list[Recorded]:
    """Configs and metrics of runs of meta-training, or of any other.

    Raises:
        InputError: if there is no run, or one has recorded nothing or is of the other kind.
    """
    runs = []
    for path in require_runs(request):
        run = open_run(path)
        config = run.config()
        if isinstance(config.training, MAMLOptions) != of_meta:
            raise InputError(
                f"{path} is no run of the algorithm maml; metasched figure learning-curves draws "
                f"its curves"
                if of_meta
                else f"{path} is a run of meta-training, whose tasks have costs in different "
                f"units; metasched figure meta-curves draws its curves"
            )
        rows = run.history.rows()
        if not rows:
            raise InputError(f"{path} has recorded no iteration yet")
        runs.append(Recorded(path, config, rows))
    return runs


def require_runs(request: FigureRequest) -> list[Path]:
    """Folders of the runs that a figure is of; raises `InputError` if there is none."""
    if not request.runs:
        raise InputError("this figure needs runs: give them with --runs, for instance runs/MY_RUN")
    return find_runs(request.runs)


def collect(request: FigureRequest) -> list[Row]:
    """Reads the runs' metrics and evaluates the heuristics on the same validation jobsets.

    Raises:
        InputError: as `read_runs`, or if the runs learn different tasks.
    """
    runs = read_runs(request)
    first = runs[0].config
    for run in runs:
        if (run.config.task, run.config.evaluation.jobsets) != (
            first.task,
            first.evaluation.jobsets,
        ):
            raise InputError(
                f"{runs[0].path} and {run.path} learn different tasks or are validated on "
                "different jobsets, so their curves cannot share axes; draw them separately"
            )
    metric = first.task.build_objective().metric.name
    names = {"iteration": KEY, "value": f"eval/{metric}", **CELLS}
    rows: list[Row] = []
    tasks: dict[int, Task] = {}
    for key, group in group_by_experiment(runs):
        for run in group:
            task = run.config.task.build(run.config.name, run.config.seed)
            tasks[task.seed] = task
            head = _head("run", key, task, metric, first.evaluation.jobsets)
            for one in run.rows:
                cells = {short: one.get(name, math.nan) for short, name in names.items()}
                rows.append({**head, **cells})
    todo = [(task, name) for task in tasks.values() for name in heuristics_of(task)]
    request.progress.start(len(todo), unit="evaluation")
    for done, (task, name) in enumerate(todo, start=1):
        rows.append(_heuristic(name, task, metric, first.evaluation.jobsets))
        request.progress.step(done, f"seed {task.seed}: {name}")
    request.progress.close()
    return rows


def heuristics_of(task: Task) -> Sequence[str]:
    """All heuristics, or the baselines alone where there are more than lines can be told apart."""
    names = task.spec.heuristics.names()
    return names if len(names) <= MOST_LINES else task.spec.baselines


def _heuristic(name: str, task: Task, metric: str, num_jobsets: int) -> Row:
    """A heuristic on a run's validation jobsets, which are also those that it is tuned on."""
    jobsets = task.jobsets(Split.VALIDATION, range(num_jobsets))
    group = PolicyGroup(name, (get_heuristic(name, task.world),))
    if tuned_numbers(name, task.world):
        best = tune(name, jobsets, task.world, metric=metric)
        group = PolicyGroup(best.name, (best.policy,))
    (result,) = compare_policies([group], jobsets, task.world, run_seed=task.seed, also=[metric])
    return {
        **_head("heuristic", name, task, metric, num_jobsets),
        "policy": result.name,
        "value": result.mean(metric),
        "unfinished": result.means["unfinished"],
    }


def _head(series: str, key: str, task: Task, metric: str, num_jobsets: int) -> dict[str, Any]:
    axis = task.spec.presentation.axis
    place = {} if axis is None else {axis.name: task.position_on(Split.VALIDATION)}
    return {
        "series": series,
        "key": key,
        "seed": task.seed,
        "metric": metric,
        **place,
        **task.columns(),
        "world": task.world.kind,
        "jobs": jobs_of(task, Split.VALIDATION),
        "jobsets": num_jobsets,
    }


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


def collect_costs(request: FigureRequest) -> list[Row]:
    """Reads what runs, also of different tasks, recorded of themselves.

    Returns:
        One row for each iteration of each run: decisions of an episode, on average; and all
        decisions and seconds of training until then.

    Raises:
        InputError: as `read_runs`.
    """
    rows: list[Row] = []
    for key, group in group_by_experiment(read_runs(request)):
        for run in group:
            head: Row = {"series": "run", "key": key, "seed": run.config.seed}
            seconds = np.cumsum([one.get("time/iteration_s", 0.0) for one in run.rows]).tolist()
            for one, elapsed in zip(run.rows, seconds, strict=True):
                cells = {short: one.get(name, math.nan) for short, name in COSTS.items()}
                rows.append({**head, **cells, "seconds": elapsed})
    return rows


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


TIME = FigureRecipe(collect_costs, draw_times)
LENGTH = FigureRecipe(collect_costs, draw_lengths)
