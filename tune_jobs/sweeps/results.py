"""What came out of a sweep: the table of its trials, the best ones, configs to train with."""

import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tune_jobs.runs.directory import RunDirectory
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import SweepFolder, TrialFile
from tune_jobs.sweeps.points import as_row, short_value
from tune_jobs.terminal.files import replacing, short_path
from tune_jobs.terminal.running import program
from tune_jobs.terminal.tables import Row, write_table

TABLE = "trials.csv"
FIXED_COLUMNS = (
    *("sweep", "trial", "status", "iterations", "metric", "mode", "score", "best", "seed"),
    *("busy_s", "run"),
)
"""Columns of the table that are no settings."""


def score_of(sweep: Sweep, rows: list[MetricRow]) -> float:
    """What a trial is ranked by; NaN if it has no value of the metric yet.

    Args:
        sweep: says which metric, and over how many of its newest values.
        rows: of its ``metrics.csv``.
    """
    newest = [row[sweep.metric] for row in rows if sweep.metric in row][-sweep.average :]
    return sum(newest) / len(newest) if newest else math.nan


@dataclass(frozen=True)
class ScoredTrial:
    """A trial that has begun.

    Attributes:
        file: what is known of it.
        run: its run directory.
        iterations: that it has done.
        score: what it is ranked by, NaN if it has none yet.
        task: what is special about its task, as text; empty where all trials share one.
    """

    file: TrialFile
    run: RunDirectory
    iterations: int
    score: float
    task: str


def scored_trials(folder: SweepFolder) -> list[ScoredTrial]:
    """The trials that have begun, in order."""
    sweep, found = folder.sweep, []
    for file, run in folder.started():
        rows = run.history.rows()
        iterations = int(rows[-1]["iteration"]) if rows else 0
        task = file.point.describe(sweep.task_keys)
        found.append(ScoredTrial(file, run, iterations, score_of(sweep, rows), task))
    return found


def best_trials(folder: SweepFolder) -> list[ScoredTrial]:
    """The best trial of each task, of those that ran to their end if there are any.

    Scores of different tasks are not compared: an objective may have little to lose. A trial that
    was stopped early has a score of fewer iterations, so it comes after those that were not.
    """
    sign = 1.0 if folder.sweep.mode == "min" else -1.0
    best: dict[str, ScoredTrial] = {}
    for trial in scored_trials(folder):
        if not math.isnan(trial.score):
            rivals = [trial, best[trial.task]] if trial.task in best else [trial]
            best[trial.task] = min(
                rivals, key=lambda each: (each.file.status != "finished", sign * each.score)
            )
    return list(best.values())


def table_of(folder: SweepFolder) -> list[dict[str, Any]]:
    """A row for each trial that has begun, in order."""
    sweep = folder.sweep
    best = {trial.file.point.index for trial in best_trials(folder)}
    return [
        {
            "sweep": sweep.name,
            "trial": trial.file.point.index,
            "status": trial.file.status,
            "iterations": trial.iterations,
            "metric": sweep.metric,
            "mode": sweep.mode,
            "score": trial.score,
            "best": int(trial.file.point.index in best),
            "seed": trial.run.config().seed,
            "busy_s": trial.file.busy_s,
            "run": trial.run.path.relative_to(folder.path).as_posix(),
            **as_row(trial.file.point.settings),
        }
        for trial in scored_trials(folder)
    ]


def best_config_path(folder: SweepFolder, best: ScoredTrial) -> Path:
    """Where the config of the best trial of a task is kept: ``best-makespan.yaml``."""
    settings = best.file.point.settings
    values = "-".join(short_value(settings[key]) for key in folder.sweep.task_keys)
    name = re.sub(r"[^\w.+]+", "-", values).strip("-")
    return folder.path / (f"best-{name}.yaml" if name else "best.yaml")


def write_results(folder: SweepFolder) -> list[Path]:
    """Writes the table of the trials, and the config of the best one of each task.

    Returns:
        Paths of what was written.
    """
    rows: list[Row] = list(table_of(folder))
    if not rows:
        return []
    written = [folder.path / TABLE]
    write_table(written[0], rows)
    for best in best_trials(folder):
        config = best.run.config().to_dict() | {"name": f"{folder.sweep.name}-best"}
        del config["runs"]  # so that it can be taken elsewhere
        written.append(best_config_path(folder, best))
        about = (
            f"# The best of the sweep {folder.sweep.name}{best.task and f' with {best.task}'}: "
            f"{folder.sweep.metric} {best.score:.5g},\n"
            f"# trial {best.file.point.index:03d}, {best.file.point.describe()}.\n"
            f"# {train_command(written[-1])}\n"
        )
        with replacing(written[-1]) as aside:
            aside.write_text(about + yaml.safe_dump(config, sort_keys=False))
    return written


def train_command(path: Path) -> str:
    """How to train what a config file says."""
    return f"{program()} train {shlex.quote(str(short_path(path)))}"


def resume_command(folder: SweepFolder) -> str:
    """How to go on with a sweep."""
    return f"{program()} tune --resume {shlex.quote(str(short_path(folder.path)))}"
