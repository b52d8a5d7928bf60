"""``metasched train``: one training run on Ray."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from tune_jobs.cli import CONTEXT, program

if TYPE_CHECKING:
    pass


def _list_presets(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from rllib_configs.loading import PRESETS, preset_names

    formatter = click.HelpFormatter(width=100)
    formatter.write_dl([(name, summary(PRESETS / f"{name}.yaml")) for name in preset_names()])
    click.echo(formatter.getvalue(), nl=False)
    context.exit()


def summary(path: Path) -> str:
    """The comment at the top of a preset."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


@click.command(name="train", context_settings=CONTEXT)
@click.argument("preset", required=False)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting, for instance training.lr=3e-4; can be repeated.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of all random numbers of the run.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that holds the runs, by default runs.",
)
@click.option(
    "--run",
    "run_dir",
    type=click.Path(path_type=Path),
    help="Folder of this run, new or empty, instead of one with a made-up name.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Go on with an earlier run from its newest checkpoint, or from the one that is named.",
)
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Go on with the run in the folder --run if there is one, else begin it: for a job that is "
    "submitted again when its cluster was lost.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Ray cluster to train on, or auto; by default Ray is started on this machine.",
)
@click.option("--runners", type=click.IntRange(0), help="Sampling processes; 0 samples here.")
@click.option("--no-track", is_flag=True, help="Do not record the run in MLflow.")
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow server or database; by default MLFLOW_TRACKING_URI, or one beside the runs.",
)
@click.option(
    "--presets",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_presets,
    help="List the presets and exit.",
)
def command(
    preset: str | None,
    overrides: tuple[str, ...],
    seed: int | None,
    runs: Path | None,
    run_dir: Path | None,
    resume: Path | None,
    goes_on: bool,
    address: str | None,
    runners: int | None,
    no_track: bool,
    tracking_uri: str | None,
) -> None:
    """Train a scheduler. PRESET is the name of a preset or the path of a YAML file.

    Ctrl-C and SIGTERM let the iteration finish and leave a checkpoint; --resume goes on from there
    and comes to the same numbers as if nothing had happened.

    \b
    Examples:
      metasched train deeprm-smoke
      metasched train deeprm --set task.workload.load=1.1 --seed 3
      metasched train my-experiment.yaml --address 10.0.0.5:6379 --runners 16
      metasched train deeprm --run /shared/runs/a --continue --address auto
      metasched train --resume runs/deeprm-20260101-120000-s0 --set training.iterations=2000
    """
    from rllib_configs.loading import load_config
    from rllib_configs.registries import prepare
    from tune_jobs.runs.resuming import find_continuation, find_resumption
    from tune_jobs.runs.training import run_training
    from tune_jobs.terminal.progress import Progress

    changes = [*overrides, *_as_overrides(seed, runs, runners, no_track, tracking_uri)]
    resumption = None
    if goes_on and (run_dir is None or resume is not None):
        raise InputError("--continue takes the folder of the run as --run, and no --resume")
    if resume is not None:
        if preset is not None or run_dir is not None:
            raise InputError("--resume takes all from the run, so give no preset and no --run")
        resumption = find_resumption(resume, changes)
        config = resumption.config
    elif preset is None:
        raise InputError("say what to train: the name of a preset (--presets lists them) or a file")
    else:
        config = load_config(preset, changes)
        if goes_on and run_dir is not None:
            config = prepare(config)
            resumption = find_continuation(run_dir.expanduser(), config)
    result = run_training(
        config, run_dir=run_dir, resume=resumption, address=address, progress=Progress()
    )
    if result.exit_status:
        raise click.exceptions.Exit(result.exit_status)
    run = result.run
    click.echo(f"Trained for {result.iterations} iterations.")
    click.echo(f"Run      {run.path}")
    click.echo(f"Policy   {run.policy}")
    if config.tracking.enabled:
        click.echo(f"MLflow   {program()} ui --runs {run.path.parent}")


def _as_overrides(
    seed: int | None,
    runs: Path | None,
    runners: int | None,
    no_track: bool,
    tracking_uri: str | None,
) -> list[str]:
    values = {
        "seed": seed,
        "runs": None if runs is None else str(runs),
        "resources.num_runners": runners,
        "tracking.enabled": False if no_track else None,
        "tracking.uri": tracking_uri,
    }
    return [f"{key}={json.dumps(value)}" for key, value in values.items() if value is not None]


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
