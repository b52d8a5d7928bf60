"""``metasched tune``: a sweep over objectives and hyperparameters, on Ray Tune."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    SEED,
    cluster_options,
    count,
    first_comment,
    list_option,
)
from tune_jobs.terminal.output import json_option


def _sweeps() -> list[tuple[str, str]]:
    from tune_jobs.sweeps.definition import NAMED, sweep_names

    return [(name, first_comment(NAMED / f"{name}.yaml")) for name in sweep_names()]


@click.command(name="tune", context_settings=CONTEXT)
@click.argument("sweep", required=False)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting of all trials, for instance training.iterations=100; can be repeated.",
)
@click.option(
    "--trials",
    "num_trials",
    type=count(),
    help="Trials for each combination of the grids.",
)
@click.option(
    "--seed", type=SEED, help="Seed of the search; the seeds of all trials are derived from it."
)
@click.option(
    "--concurrent",
    "num_concurrent",
    type=count(0),
    help="Trials at a time; 0 runs as many as the CPUs allow.",
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
    help="Folder of this sweep, new or empty; by default one with a generated name.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="SWEEP_DIR",
    help="Resume an interrupted or killed sweep.",
)
@json_option("Print the best trials as JSON.")
@cluster_options
@list_option("--sweeps", "the named sweeps", _sweeps)
def command(**options: Any) -> None:
    """Try many settings. SWEEP is the name of a sweep or the path of a YAML file.

    Each trial is an ordinary run with its own seed. Ctrl-C and SIGTERM stop a sweep cleanly. After
    them, or after a crash, --resume leaves finished trials alone and continues the others from
    their checkpoints. If trials have different tasks, for instance several objectives, each task
    has its own best trial.

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
    from tune_jobs.figures import draw_figure
    from tune_jobs.sweeps.launching import SweepOptions, launch_sweep, report

    as_json = options.pop("as_json")
    result = launch_sweep(SweepOptions(**options), draw_figure)
    report(result, as_json)
    if result.exit_status:  # a trial failed, or a signal has stopped the sweep
        raise click.exceptions.Exit(result.exit_status)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
