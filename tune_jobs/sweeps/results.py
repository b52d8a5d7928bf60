"""What came out of a sweep: the table of its trials, the best of them, a config to train with."""

import math
import shlex
from pathlib import Path
from typing import Any

import yaml

from tune_jobs.runs.directory import RunDirectory
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import SweepFolder, TrialFile
from tune_jobs.sweeps.points import as_row
from tune_jobs.terminal.files import replacing, short_path
from tune_jobs.terminal.running import program
from tune_jobs.terminal.tables import Row, write_table

TABLE = "trials.csv"
BEST = "best.yaml"
FIXED_COLUMNS = (
    *("sweep", "trial", "status", "iterations", "metric", "mode", "score", "seed"),
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


def table_of(folder: SweepFolder) -> list[dict[str, Any]]:
    """A row for each trial that has begun, in order."""
    sweep = folder.sweep
    rows = []
    for file, run in folder.started():
        history = run.history.rows()
        row = {
            "sweep": sweep.name,
            "trial": file.point.index,
            "status": file.status,
            "iterations": int(history[-1]["iteration"]) if history else 0,
            "metric": sweep.metric,
            "mode": sweep.mode,
            "score": score_of(sweep, history),
            "seed": run.config().seed,
            "busy_s": file.busy_s,
            "run": run.path.relative_to(folder.path).as_posix(),
        }
        rows.append({**row, **as_row(file.point.settings)})
    return rows


def best_trial(folder: SweepFolder) -> tuple[TrialFile, RunDirectory, float] | None:
    """The best trial, of those that ran to their end if there are any; None without a score.

    A trial that was stopped early has a score of fewer iterations, so it comes after those.
    """
    sign = 1.0 if folder.sweep.mode == "min" else -1.0
    found = []
    for file, run in folder.started():
        score = score_of(folder.sweep, run.history.rows())
        if not math.isnan(score) and run.policy.is_dir():
            found.append((file, run, score))
    if not found:
        return None
    return min(found, key=lambda each: (each[0].status != "finished", sign * each[2]))


def write_results(folder: SweepFolder) -> tuple[Path, Path | None]:
    """Writes the table of the trials and the best one's config.

    Returns:
        Their paths; the second is None while no trial has a score.
    """
    table = folder.path / TABLE
    rows: list[Row] = list(table_of(folder))
    if rows:
        write_table(table, rows)
    best = best_trial(folder)
    if best is None:
        return table, None
    file, run, score = best
    config = run.config().to_dict() | {"name": f"{folder.sweep.name}-best"}
    del config["runs"]  # so that it can be taken elsewhere
    path = folder.path / BEST
    about = (
        f"# The best of {len(rows)} trials of the sweep {folder.sweep.name}: {folder.sweep.metric} "
        f"{score:.5g},\n# trial {file.point.index:03d}, {file.point.describe()}.\n"
        f"# {train_command(path)}\n"
    )
    with replacing(path) as aside:
        aside.write_text(about + yaml.safe_dump(config, sort_keys=False))
    return table, path


def train_command(path: Path) -> str:
    """How to train what a config file says."""
    return f"{program()} train {shlex.quote(str(short_path(path)))}"


def resume_command(folder: SweepFolder) -> str:
    """How to go on with a sweep."""
    return f"{program()} tune --resume {shlex.quote(str(short_path(folder.path)))}"
