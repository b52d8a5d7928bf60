"""What ``metasched tune`` does: begins a sweep or goes on with one, and says what came out."""

from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from rllib_configs.config.changes import parse_override
from tune_jobs.commands.shared import texts_of
from tune_jobs.commands.training import Tune
from tune_jobs.sweeps.definition import Sweep, load_sweep
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
from tune_jobs.tracking.recording import DrawFigure


def launch_sweep(options: Tune, draw: DrawFigure) -> SweepResult:
    """Runs a sweep, and draws its figure when it has ended.

    Raises:
        InputError: if the options contradict each other, or the sweep cannot run.
    """
    settings_given = texts_of(options.changes)
    new = options.sweep, options.out, *settings_given, options.num_trials, options.seed
    sweep: Sweep | SweepFolder
    if options.resume is not None:
        if any(value is not None for value in new):
            raise InputError(
                "--resume takes its settings from the sweep, so give no SWEEP, --out, "
                "--set, --trials or --seed"
            )
        folder = open_sweep(Path(options.resume))
        # A sweep may be somebody else's: it does not say where records and credentials go.
        settings = {**folder.sweep.settings, "tracking.uri": options.tracking_uri}
        if not options.track:
            settings["tracking.enabled"] = False
        changed: dict[str, Any] = {"settings": settings}
        if options.num_concurrent is not None:
            changed["concurrent"] = options.num_concurrent
        sweep = SweepFolder(folder.path, folder.sweep.model_copy(update=changed))
    elif options.sweep is None:
        raise InputError("name a sweep (metasched tune lists them) or a file of one")
    else:
        values = {
            "trials": options.num_trials,
            "seed": options.seed,
            "concurrent": options.num_concurrent,
            "settings.tracking.enabled": None if options.track else False,
            "settings.tracking.uri": options.tracking_uri,
        }
        changes = [(f"settings.{key}", v) for key, v in map(parse_override, settings_given)]
        changes += [(name, value) for name, value in values.items() if value is not None]
        sweep = load_sweep(str(options.sweep), changes)
    out = None if options.out is None else Path(options.out)
    return run_sweep(sweep, runs=Path(options.runs), path=out, address=options.address, draw=draw)


def report(result: SweepResult, as_json: bool) -> None:
    """Says what came out of a sweep."""
    if as_json:
        print_json(_plain(result))
        return
    folder, counts = result.folder, result.counts
    if not folder.path.exists():  # see `SweepFolder.discard_if_unused`
        click.echo("No trial had begun, so nothing is kept.")
        return
    if not any(count for name, count in counts.items() if name != "left"):
        click.echo("Nothing was finished.")
    path = short_path(folder.path)
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    click.echo(
        f"{', '.join(parts)} in {duration(result.wall_s)}; {result.share:.0%} of the time of "
        f"{result.num_slots} {'slots' if result.num_slots > 1 else 'slot'} was spent in training."
    )
    bests = best_trials(folder)
    for best in bests:
        click.echo(
            f"Best     trial {best.index:03d}, {folder.sweep.metric} {best.score:.4g}: "
            f"{best.file.point.describe()}{best.describe_end()}"
        )
    click.echo(f"Trials   {path / TABLE}")
    if (folder.path / "figures" / "sweep.png").exists():
        click.echo(f"Figure   {path / 'figures' / 'sweep.png'}")
    if result.recorded is not None:
        click.echo(f"MLflow   {result.recorded}")
    for best in bests:
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
                "trial": best.index,
                "score": best.score,
                "status": best.file.status,
                "iterations": best.done,
                "settings": best.file.point.settings,
                "run": str(best.run.path),
                "config": str(best_config_path(folder, best)),
            }
            for best in best_trials(folder)
        ],
    }
