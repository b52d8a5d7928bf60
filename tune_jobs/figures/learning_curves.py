"""Learning curves (DeepRM, figure 6): a metric on validation jobsets, and reward, by iteration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.evaluation import (
    PolicyGroup,
    compare_policies,
    get_metric,
    tune,
    tuned_numbers,
)
from cluster_env.worlds import get_heuristic
from meta.maml.options import MAMLOptions
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.trained_runs import find_runs, group_by_experiment
from tune_jobs.comparing.wording import described, jobs_of, on_jobs
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
from tune_jobs.runs.directory import open_run
from tune_jobs.runs.history import KEY
from tune_jobs.runs.history import MetricRow as Iteration
from tune_jobs.terminal.tables import Cells, Row, Value, number, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

COLUMNS = (
    *("series", "key", "seed", "iteration", "metric", "value", "return_mean", "return_max"),
    "jobsets",
)

MOST_LINES = 8

_HEIGHT = 4.0


@dataclass(frozen=True)
class Recorded:
    """What a run has written down."""

    path: Path
    config: ExperimentConfig
    rows: list[Iteration]


def collect(request: FigureRequest) -> list[Row]:
    """Reads the runs' metrics and evaluates the heuristics on the same validation jobsets.

    Raises:
        InputError: if there is no run, one has recorded nothing or is of
            meta-training, or they learn different tasks.
    """
    if not request.runs:
        raise InputError(
            "learning curves need runs: give them with --runs, for instance runs/MY_RUN"
        )
    runs = [read_run(path) for path in find_runs(request.runs)]
    _check_same_task(runs)
    metric = runs[0].config.task.build_objective().metric.name
    rows: list[Row] = []
    tasks: dict[int, Task] = {}
    for key, group in group_by_experiment(runs):
        for run in group:
            task = run.config.task.build(run.config.name, run.config.seed)
            tasks[task.seed] = task
            head = _head("run", key, task, metric, run.config.evaluation.jobsets)
            rows += [{**head, **_cells(iteration, metric)} for iteration in run.rows]
    todo = [(task, name) for task in tasks.values() for name in heuristics_of(task)]
    request.progress.start(len(todo), unit="evaluation")
    for done, (task, name) in enumerate(todo, start=1):
        rows.append(_heuristic(name, task, metric, runs[0].config.evaluation.jobsets))
        request.progress.step(done, f"seed {task.seed}: {name}")
    request.progress.close()
    return rows


def draw(table: Path) -> "Figure":
    """Draws the CSV file of `collect`.

    Several seeds of one experiment are drawn as their mean, in a band from the lowest to the
    highest seed.

    Raises:
        InputError: if the file does not hold it.
    """
    rows = read_table(table, COLUMNS)
    metric = get_metric(rows[0]["metric"])
    runs = [row for row in rows if row["series"] == "run"]
    with styled():
        figure = new_figure(_HEIGHT)
        left, right = figure.subplots(1, 2)
        first = rows[0]
        headline(
            figure,
            f"Learning curves {on_jobs(first)}",
            f"{first['jobsets']} validation jobsets, {described(first)}; {seeds_note(runs)}",
        )
        left.set_title(f"(a) {metric.label}")
        right.set_title("(b) mean and maximum reward")
        _draw_metric(left, rows, metric.label)
        _draw_reward(right, runs)
    return figure


def read_run(path: Path) -> Recorded:
    """Reads the config and the metrics of a run.

    Raises:
        InputError: if it has recorded nothing, or is of meta-training.
    """
    run = open_run(path)
    config = run.config()
    if isinstance(config.training, MAMLOptions):
        raise InputError(
            f"{path} is a run of meta-training, whose tasks have costs in different units; "
            f"metasched figure meta-curves draws its curves"
        )
    rows = run.history.rows()
    if not rows:
        raise InputError(f"{path} has recorded no iteration yet")
    return Recorded(path, config, rows)


def _check_same_task(runs: Sequence[Recorded]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if (run.config.task, run.config.evaluation.jobsets) != (
            first.config.task,
            first.config.evaluation.jobsets,
        ):
            raise InputError(
                f"{first.path} and {run.path} learn different tasks or are validated on different "
                f"jobsets, so their curves cannot share axes; draw them apart"
            )


def _head(series: str, key: str, task: Task, metric: str, num_jobsets: int) -> dict[str, Value]:
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


def _cells(iteration: Iteration, metric: str) -> dict[str, float]:
    names = {
        "iteration": KEY,
        "value": f"eval/{metric}",
        "unfinished": "eval/unfinished",
        "return_mean": "train/return_mean",
        "return_max": "train/return_max",
    }
    return {short: iteration.get(name, math.nan) for short, name in names.items()}


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


def _draw_metric(axes: "Axes", rows: Sequence[Cells], label: str) -> None:
    values = [number(row, "value") for row in rows]
    labels = []
    for key in dict.fromkeys(row["key"] for row in rows if row["series"] == "heuristic"):
        mine = [row for row in rows if row["key"] == key and row["series"] == "heuristic"]
        level = float(np.mean([number(row, "value") for row in mine]))
        color = color_of(key, learned=False)
        axes.axhline(level, color=color, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
        star = "*" if "*" in mine[0].get("policy", "") else ""
        labels.append((level, f"{key}{star}", color))
    for place, (key, runs) in enumerate(experiments(rows).items()):
        x, mean, low, high = curve(runs, "value")
        if not x.size:
            continue
        color = color_of(key, learned=True, place=place)
        axes.plot(x, mean, color=color, linewidth=2.2, marker="o", markersize=3.5, zorder=3)
        axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0, zorder=2)
        labels.append((float(mean[-1]), key, color))
    count_iterations(axes)
    axes.set_ylabel(label)
    axes.set_xlim(0, max(number(row, "iteration") for row in rows if row["series"] == "run"))
    scale_values(axes, np.array(values))
    label_ends(axes, labels)


def _draw_reward(axes: "Axes", rows: Sequence[Cells]) -> None:
    labels = []
    found = experiments(rows)
    for place, (key, runs) in enumerate(found.items()):
        color = color_of(key, learned=True, place=place)
        for column, name, style in (
            ("return_mean", "mean", "-"),
            ("return_max", "max", (0, (3, 1))),
        ):
            x, mean, low, high = curve(runs, column)
            if not x.size:
                continue
            axes.plot(x, mean, color=color, linewidth=1.6, linestyle=style)
            axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            labels.append((float(mean[-1]), name, color))
    count_iterations(axes)
    axes.set_ylabel("total reward")
    axes.set_xlim(0, max(number(row, "iteration") for row in rows if row["series"] == "run"))
    label_ends(axes, labels)


def experiments(rows: Sequence[Cells]) -> dict[str, list[Cells]]:
    """The rows of runs, by the experiment that they are seeds of."""
    groups: dict[str, list[Cells]] = {}
    for row in rows:
        if row["series"] == "run":
            groups.setdefault(row["key"], []).append(row)
    return groups


def curve(rows: Sequence[Cells], column: str) -> Curve:
    """Iterations that every seed has recorded, with mean, lowest and highest over the seeds."""
    seeds = {row["seed"] for row in rows}
    values: dict[float, dict[str, float]] = {}
    for row in rows:
        value = number(row, column)
        if not math.isnan(value):
            values.setdefault(number(row, "iteration"), {})[row["seed"]] = value
    x = sorted(k for k, by_seed in values.items() if len(by_seed) == len(seeds))
    table = np.array([list(values[k].values()) for k in x]).reshape(len(x), len(seeds))
    return np.array(x), table.mean(axis=1), table.min(axis=1), table.max(axis=1)


def seeds_note(rows: Sequence[Cells]) -> str:
    """Says how many training seeds stand behind each curve."""
    counts = {key: len({row["seed"] for row in runs}) for key, runs in experiments(rows).items()}
    if set(counts.values()) == {1}:
        return "one training seed"
    seeds = ", ".join(f"{key} {count}" for key, count in counts.items())
    return f"bands: all training seeds ({seeds})"
