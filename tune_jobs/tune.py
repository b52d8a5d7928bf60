"""``metasched tune``: a sweep over objectives and hyperparameters, on Ray Tune."""

from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.cli import CONTEXT


def _list_sweeps(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from tune_jobs.sweeps.definition import NAMED, sweep_names
    from tune_jobs.train import summary

    formatter = click.HelpFormatter(width=100)
    formatter.write_dl([(name, summary(NAMED / f"{name}.yaml")) for name in sweep_names()])
    click.echo(formatter.getvalue(), nl=False)
    context.exit()


@click.command(name="tune", context_settings=CONTEXT)
@click.argument("sweep", required=False)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting of all trials, for instance training.iterations=100; can be repeated.",
)
@click.option("--trials", type=click.IntRange(1), help="Trials for each combination of the grids.")
@click.option("--seed", type=click.IntRange(0), help="Seed that all trials' seeds come from.")
@click.option(
    "--concurrent",
    type=click.IntRange(0),
    help="Trials at a time; 0 for as many as there are CPUs for.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    help="Folder that holds runs and sweeps.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of this sweep, new or empty, instead of one with a made-up name.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="SWEEP_DIR",
    help="Go on with a sweep that was interrupted, however that happened.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Ray cluster to train on, or auto; by default Ray is started on this machine.",
)
@click.option("--no-track", is_flag=True, help="Do not record the sweep in MLflow.")
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow server or database; by default MLFLOW_TRACKING_URI, or one beside the runs.",
)
@click.option(
    "--sweeps",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_sweeps,
    help="List the sweeps that there are by name and exit.",
)
def command(
    sweep: str | None,
    settings: tuple[str, ...],
    trials: int | None,
    seed: int | None,
    concurrent: int | None,
    runs: Path,
    out: Path | None,
    resume: Path | None,
    address: str | None,
    no_track: bool,
    tracking_uri: str | None,
) -> None:
    """Try many settings. SWEEP is the name of a sweep or the path of a YAML file.

    Each trial is an ordinary run, with a seed of its own. Ctrl-C and SIGTERM stop cleanly; after
    them, or after a crash, --resume leaves finished trials as they are and goes on with the others
    from their checkpoints.

    \b
    A sweep in YAML:
      preset: deeprm-ppo
      settings: {training.iterations: 100}
      space:
        task.objective: {grid: [slowdown, makespan]}
        training.lr: {log_uniform: [1.0e-4, 1.0e-2]}
        training.hidden: {choice: [16, 32, 64]}
      search: random          # or grid, asha, pbt, optuna
      trials: 8               # for each combination of the grids

    \b
    Examples:
      metasched tune smoke
      metasched tune learning-rate --trials 16 --set task.workload.load=1.1
      metasched tune my-sweep.yaml --address 10.0.0.5:6379
      metasched tune --resume runs/learning-rate-20260101-120000-s0
    """
    from tune_jobs.sweeps.definition import load_sweep
    from tune_jobs.sweeps.folder import SweepFolder, open_sweep
    from tune_jobs.sweeps.sweeping import run_sweep

    changes = _changes(settings, trials, seed, concurrent, no_track, tracking_uri)
    if resume is not None:
        if sweep is not None or out is not None or settings or trials or seed is not None:
            raise InputError(
                "--resume takes all from the sweep, so give no SWEEP, --out, --set, "
                "--trials or --seed"
            )
        folder = open_sweep(resume)
        data = folder.sweep.model_copy(
            update={} if concurrent is None else {"concurrent": concurrent}
        )
        result = run_sweep(SweepFolder(folder.path, data), address=address)
    elif sweep is None:
        raise InputError("say what to try: the name of a sweep (--sweeps lists them) or a file")
    else:
        result = run_sweep(load_sweep(sweep, changes), runs=runs, path=out, address=address)
    _report(result)
    if result.exit_status:
        raise click.exceptions.Exit(result.exit_status)


def _changes(
    settings: tuple[str, ...],
    trials: int | None,
    seed: int | None,
    concurrent: int | None,
    no_track: bool,
    tracking_uri: str | None,
) -> list[tuple[str, Any]]:
    from rllib_configs.loading import parse_override

    changes: list[tuple[str, Any]] = []
    for override in settings:
        key, value = parse_override(override)
        changes.append((f"settings.{key}", value))
    values = {
        "trials": trials,
        "seed": seed,
        "concurrent": concurrent,
        "settings.tracking.enabled": False if no_track else None,
        "settings.tracking.uri": tracking_uri,
    }
    return changes + [(name, value) for name, value in values.items() if value is not None]


def _report(result: Any) -> None:
    from tune_jobs.runs.files import short_path
    from tune_jobs.sweeps.results import BEST, TABLE, best_trial, resume_command, train_command
    from tune_jobs.terminal.progress import duration

    folder, counts = result.folder, result.counts
    if not any(count for name, count in counts.items() if name != "left"):
        click.echo("Nothing was finished.")
    path = short_path(folder.path)
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    click.echo(
        f"{', '.join(parts)} in {duration(result.wall_s)}; {result.share:.0%} of the time of "
        f"{result.slots} {'slots' if result.slots > 1 else 'slot'} was spent in training."
    )
    best = best_trial(folder)
    if best is not None:
        file, run, score = best
        click.echo(
            f"Best     trial {file.point.index:03d}, {folder.sweep.metric} {score:.4g}: "
            f"{file.point.describe()}"
        )
        click.echo(f"Run      {short_path(run.path)}")
    click.echo(f"Trials   {path / TABLE}")
    if (folder.path / "figures" / "sweep.png").exists():
        click.echo(f"Figure   {path / 'figures' / 'sweep.png'}")
    if best is not None:
        click.echo(f"Train    {train_command(folder.path / BEST)}")
    if counts["left"]:
        click.echo(f"Resume   {resume_command(folder)}")


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
