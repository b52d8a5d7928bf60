"""What ``metasched tune`` does: begins a sweep or goes on with one, and says what came out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from rllib_configs.loading import parse_override
from tune_jobs.sweeps.definition import load_sweep
from tune_jobs.sweeps.folder import SweepFolder, open_sweep
from tune_jobs.sweeps.results import (
    TABLE,
    best_config_path,
    best_trials,
    resume_command,
    train_command,
)
from tune_jobs.sweeps.sweeping import SweepResult, run_sweep
from tune_jobs.terminal.files import short_path
from tune_jobs.terminal.output import print_json
from tune_jobs.terminal.progress import duration
from tune_jobs.tracking.recording import DrawFigure, say_where_to_look


def launch_sweep(
    *,
    sweep: str | None,
    settings: Sequence[str],
    num_trials: int | None,
    seed: int | None,
    num_concurrent: int | None,
    runs: Path,
    out: Path | None,
    resume: Path | None,
    address: str | None,
    no_track: bool,
    tracking_uri: str | None,
    as_json: bool,
    draw: DrawFigure,
) -> None:
    """Runs a sweep, and says what came out; the arguments are the options of the command.

    Raises:
        InputError: if the options contradict each other, or the sweep cannot run.
        Exit: if a trial failed, or a signal has stopped the sweep.
    """
    if resume is not None:
        if sweep is not None or out is not None or settings or num_trials or seed is not None:
            raise InputError(
                "--resume takes all from the sweep, so give no SWEEP, --out, --set, "
                "--trials or --seed"
            )
        folder = open_sweep(resume)
        changed = {} if num_concurrent is None else {"concurrent": num_concurrent}
        definition = folder.sweep.model_copy(update=changed)
        result = run_sweep(SweepFolder(folder.path, definition), address=address, draw=draw)
    elif sweep is None:
        raise InputError("say what to try: the name of a sweep (--sweeps lists them) or a file")
    else:
        values = {
            "trials": num_trials,
            "seed": seed,
            "concurrent": num_concurrent,
            "settings.tracking.enabled": False if no_track else None,
            "settings.tracking.uri": tracking_uri,
        }
        changes = [(f"settings.{key}", value) for key, value in map(parse_override, settings)]
        changes += [(name, value) for name, value in values.items() if value is not None]
        definition = load_sweep(sweep, changes)
        result = run_sweep(definition, runs=runs, path=out, address=address, draw=draw)
    report(result, as_json)
    if result.exit_status:
        raise click.exceptions.Exit(result.exit_status)


def report(result: SweepResult, as_json: bool) -> None:
    """Says what came out of a sweep."""
    if as_json:
        print_json(_plain(result))
        return
    folder, counts = result.folder, result.counts
    if not any(count for name, count in counts.items() if name != "left"):
        click.echo("Nothing was finished.")
    path = short_path(folder.path)
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    click.echo(
        f"{', '.join(parts)} in {duration(result.wall_s)}; {result.share:.0%} of the time of "
        f"{result.num_slots} {'slots' if result.num_slots > 1 else 'slot'} was spent in training."
    )
    found = best_trials(folder)
    for best in found:
        point = best.file.point
        click.echo(
            f"Best     trial {point.index:03d}, {folder.sweep.metric} {best.score:.4g}: "
            f"{point.describe()}"
        )
    click.echo(f"Trials   {path / TABLE}")
    if (folder.path / "figures" / "sweep.png").exists():
        click.echo(f"Figure   {path / 'figures' / 'sweep.png'}")
    if folder.sweep.settings.get("tracking.enabled", True):
        say_where_to_look(folder.path.parent, folder.sweep.settings.get("tracking.uri"))
    for best in found:
        click.echo(f"Train    {train_command(best_config_path(folder, best))}")
    if counts["left"]:
        click.echo(f"Resume   {resume_command(folder)}")


def _plain(result: SweepResult) -> dict[str, Any]:
    """What came out, for programs: the best trial of each task."""
    folder = result.folder
    return {
        "sweep": str(folder.path),
        "trials": result.counts,
        "metric": folder.sweep.metric,
        "mode": folder.sweep.mode,
        "best": [
            {
                "task": {key: best.file.point.settings[key] for key in folder.sweep.task_keys},
                "trial": best.file.point.index,
                "score": best.score,
                "settings": best.file.point.settings,
                "run": str(best.run.path),
                "config": str(best_config_path(folder, best)),
            }
            for best in best_trials(folder)
        ],
    }
