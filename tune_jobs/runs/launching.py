"""What ``metasched train`` does: begins a run or goes on with one, and says where it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from cluster_env.core.spec import spec_of
from rllib_configs.config.changes import parse_override
from rllib_configs.config.loading import config_text, load_config
from rllib_configs.config.schema import prepare
from tune_jobs.commands.training import Train
from tune_jobs.runs.resuming import find_continuation, find_lost_start, find_resumption
from tune_jobs.runs.training import run_training
from tune_jobs.terminal.files import short_path
from tune_jobs.terminal.progress import Progress
from tune_jobs.terminal.running import compare_command
from tune_jobs.tracking.recording import DrawFigure, where_to_look

DEFAULT_PRESET = "deeprm-operation"
"""What is trained where nobody says what: it asks the least of who has to live with it."""


def changes_of(options: Train) -> dict[str, Any]:
    """The settings that are changed, by their keys; options go before changes."""
    changes = options.changes
    pairs = changes if isinstance(changes, Mapping) else map(parse_override, changes)
    return {**dict(pairs), **options.settings}


def launch_training(
    options: Train, draw: DrawFigure, *, resume: Path | None, goes_on: bool, print_config: bool
) -> None:
    """Trains, says where the run is, and what to do next.

    Args:
        options: of the command.
        draw: draws the learning curves of a run that has ended.
        resume: folder of a run to go on with, or one of its checkpoints.
        goes_on: whether to go on with the run in ``options.run`` if it is there.
        print_config: whether to print the config and do nothing else.

    Raises:
        InputError: if the options contradict each other, or the run cannot start.
        Exit: if a signal has stopped the run.
    """
    changes = changes_of(options)
    run_dir = None if options.run is None else Path(options.run)
    resumption = None
    if goes_on and (run_dir is None or resume is not None):
        raise InputError(
            "--continue needs the run's folder as --run, and cannot be combined with --resume"
        )
    if resume is not None:
        if options.config is not None or run_dir is not None:
            raise InputError(
                "--resume takes its settings from the run, so give no preset and no --run"
            )
        resumption = find_resumption(resume, changes)
        config = resumption.config
    else:
        config = load_config(options.config or DEFAULT_PRESET, changes)
    if print_config:
        click.echo(config_text(prepare(config)), nl=False)
        return
    if resumption is None and run_dir is not None:
        config = prepare(config)
        find = find_continuation if goes_on else find_lost_start
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
