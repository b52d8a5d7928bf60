"""What ``metasched train`` does: begins a run or goes on with one, and says where it is."""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of ``metasched train``, by their names there."""

    preset: str | None
    overrides: Sequence[str]
    seed: int | None
    runs: Path | None
    run_dir: Path | None
    resume: Path | None
    goes_on: bool
    address: str | None
    num_runners: int | None
    no_track: bool
    tracking_uri: str | None
    print_config: bool


def launch_training(options: TrainingOptions, draw: DrawFigure) -> None:
    """Trains, says where the run is, and what to do next.

    Args:
        options: of the command.
        draw: draws the learning curves of a run that has ended.

    Raises:
        InputError: if the options contradict each other, or the run cannot start.
        Exit: if a signal has stopped the run.
    """
    settings = {
        "seed": options.seed,
        "runs": None if options.runs is None else str(options.runs),
        "resources.num_runners": options.num_runners,
        "tracking.enabled": False if options.no_track else None,
        "tracking.uri": options.tracking_uri,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    changes = {**dict(map(parse_override, options.overrides)), **given}
    run_dir, resumption = options.run_dir, None
    if options.goes_on and (run_dir is None or options.resume is not None):
        raise InputError(
            "--continue needs the run's folder as --run, and cannot be combined with --resume"
        )
    if options.resume is not None:
        if options.preset is not None or run_dir is not None:
            raise InputError(
                "--resume takes its settings from the run, so give no preset and no --run"
            )
        resumption = find_resumption(options.resume, changes)
        config = resumption.config
    else:
        config = load_config(options.preset or DEFAULT_PRESET, changes)
    if options.print_config:
        click.echo(config_text(prepare(config)), nl=False)
        return
    if resumption is None and run_dir is not None:
        config = prepare(config)
        find = find_continuation if options.goes_on else find_lost_start
        resumption = find(run_dir.expanduser(), config)
    result = run_training(
        config,
        run_dir=run_dir,
        resume=resumption,
        address=options.address,
        progress=Progress(),
        draw=draw,
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
