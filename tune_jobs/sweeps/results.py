"""What came out of a sweep: the table of its trials, the best ones, configs to train with."""

import math
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from tune_jobs.sweeps.folder import SweepFolder, TrialRecord
from tune_jobs.sweeps.points import as_row, short_value
from tune_jobs.tables.frames import Row, write_table
from tune_jobs.terminal.files import short_path, write_whole
from tune_jobs.terminal.running import program

TABLE = "trials.csv"
FIXED_COLUMNS = (
    *("sweep", "trial", "status", "iterations", "metric", "mode", "score", "best", "seed"),
    *("busy_s", "run"),
)
"""Columns of the table that are no settings."""


def best_trials(folder: SweepFolder) -> list[TrialRecord]:
    """The best trial of each task, of those that ran to their end if there are any.

    Scores of different tasks are not compared: an objective may have little to lose. A trial that
    was stopped early has a score of fewer iterations, so it comes after those that were not.
    """
    sign = 1.0 if folder.sweep.mode == "min" else -1.0
    best: dict[str, TrialRecord] = {}
    for trial in folder.started():
        if not math.isnan(trial.score):
            rivals = [trial, best[trial.task]] if trial.task in best else [trial]
            best[trial.task] = min(
                rivals, key=lambda each: (each.file.status != "finished", sign * each.score)
            )
    return list(best.values())


def table_of(folder: SweepFolder) -> list[dict[str, Any]]:
    """A row for each trial that has begun, in order."""
    sweep = folder.sweep
    best = {trial.index for trial in best_trials(folder)}
    return [
        {
            "sweep": sweep.name,
            "trial": trial.index,
            "status": trial.file.status,
            "iterations": trial.done,
            "metric": sweep.metric,
            "mode": sweep.mode,
            "score": trial.score,
            "best": int(trial.index in best),
            "seed": trial.config.seed,
            "busy_s": trial.file.busy_s,
            "run": trial.run.path.relative_to(folder.path).as_posix(),
            **as_row(trial.file.point.settings),
        }
        for trial in folder.started()
    ]


def best_config_path(folder: SweepFolder, best: TrialRecord) -> Path:
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
        config = best.config.to_dict() | {"name": f"{folder.sweep.name}-best"}
        del config["runs"]  # so that it can be taken elsewhere
        written.append(best_config_path(folder, best))
        about = (
            f"# The best of the sweep {folder.sweep.name}{best.task and f' with {best.task}'}: "
            f"{folder.sweep.metric} {best.score:.5g},\n"
            f"# trial {best.index:03d}, {best.file.point.describe()}{best.describe_end()}.\n"
            f"# {train_command(written[-1])}\n"
        )
        write_whole(written[-1], about + yaml.safe_dump(config, sort_keys=False))
    return written


def train_command(path: Path) -> str:
    """How to train what a config file says."""
    return f"{program()} train {shlex.quote(str(short_path(path)))}"


def resume_command(folder: SweepFolder) -> str:
    """How to go on with a sweep."""
    return f"{program()} tune --resume {shlex.quote(str(short_path(folder.path)))}"
