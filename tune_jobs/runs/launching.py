"""What ``metasched train`` does: begins a run or goes on with one, and says where it is."""

from collections.abc import Sequence
from pathlib import Path

import click

from cluster_env.core.errors import InputError
from cluster_env.core.spec import spec_of
from rllib_configs.changes import parse_override
from rllib_configs.loading import config_text, load_config
from rllib_configs.registries import prepare
from tune_jobs.runs.resuming import find_continuation, find_lost_start, find_resumption
from tune_jobs.runs.training import run_training
from tune_jobs.terminal.files import short_path
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.running import compare_command
from tune_jobs.tracking.recording import DrawFigure, where_to_look

DEFAULT_PRESET = "deeprm-operation"
"""What is trained where nobody says what: it asks the least of who has to live with it."""


def launch_training(
    *,
    preset: str | None,
    overrides: Sequence[str],
    seed: int | None,
    runs: Path | None,
    run_dir: Path | None,
    resume: Path | None,
    goes_on: bool,
    address: str | None,
    num_runners: int | None,
    no_track: bool,
    tracking_uri: str | None,
    print_config: bool,
    draw: DrawFigure,
) -> None:
    """Trains, says where the run is, and what to do next; the arguments are the command's options.

    Raises:
        InputError: if the options contradict each other, or the run cannot start.
        Exit: if a signal has stopped the run.
    """
    settings = {
        "seed": seed,
        "runs": None if runs is None else str(runs),
        "resources.num_runners": num_runners,
        "tracking.enabled": False if no_track else None,
        "tracking.uri": tracking_uri,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    changes = {**dict(map(parse_override, overrides)), **given}
    resumption = None
    if goes_on and (run_dir is None or resume is not None):
        raise InputError("--continue takes the folder of the run as --run, and no --resume")
    if resume is not None:
        if preset is not None or run_dir is not None:
            raise InputError("--resume takes all from the run, so give no preset and no --run")
        resumption = find_resumption(resume, changes)
        config = resumption.config
    else:
        preset = preset or DEFAULT_PRESET
        config = load_config(preset, changes)
    if print_config:
        click.echo(config_text(prepare(config)), nl=False)
        return
    if preset is not None and run_dir is not None:
        config = prepare(config)
        find = find_continuation if goes_on else find_lost_start
        resumption = find(run_dir.expanduser(), config)
    result = run_training(
        config, run_dir=run_dir, resume=resumption, address=address, progress=Progress(), draw=draw
    )
    if result.exit_status:
        raise click.exceptions.Exit(result.exit_status)
    run = result.run
    click.echo(f"Trained for {result.num_iterations} iterations.")
    click.echo(f"Run      {run.path}")
    click.echo(f"Policy   {run.policy}")
    if config.tracking.enabled:
        click.echo(f"MLflow   {where_to_look(run.path.parent, config.tracking.uri)}")
    baselines = spec_of(config.task.world).baselines
    click.echo(f"Next     {compare_command([*baselines, short_path(run.path)])}")
