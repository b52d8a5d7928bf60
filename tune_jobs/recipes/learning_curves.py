"""What training recorded, and the heuristics on the same validation jobsets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import (
    PolicyGroup,
    compare_policies,
    tune,
    tuned_numbers,
)
from cluster_env.task import Task
from cluster_env.worlds import get_heuristic
from meta.maml.options import MAMLOptions
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.measuring.trained_runs import find_runs, group_by_experiment
from tune_jobs.measuring.wording import jobs_of
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.runs.directory import open_run
from tune_jobs.runs.history import KEY
from tune_jobs.runs.history import MetricRow as Iteration
from tune_jobs.tables.frames import Row

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
    measured = (metric, first.evaluation.jobsets)
    found = request.work.measure(
        _heuristic, measured, todo, name=lambda piece, _: f"seed {piece[0].seed}: {piece[1]}"
    )
    return [*rows, *found]


def heuristics_of(task: Task) -> Sequence[str]:
    """All heuristics, or the baselines alone where there are more than lines can be told apart."""
    names = task.spec.heuristics.names()
    return names if len(names) <= MOST_LINES else task.spec.baselines


def _heuristic(shared: tuple[str, int], piece: tuple[Task, str]) -> Row:
    """A heuristic on a run's validation jobsets, which are also those that it is tuned on."""
    (metric, num_jobsets), (task, name) = shared, piece
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
