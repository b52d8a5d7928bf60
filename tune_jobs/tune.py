"""``metasched tune``: a sweep over objectives and hyperparameters, on Ray Tune."""

from typing import Annotated

import click

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.training import Tune
from tune_jobs.terminal.options import first_comment, print_list


def _sweeps() -> list[tuple[str, str]]:
    from tune_jobs.sweeps.definition import NAMED, sweep_names

    return [(name, first_comment(NAMED / f"{name}.yaml")) for name in sweep_names()]


@command_line.command("tune", Tune)
def command(
    options: Tune,
    *,
    as_json: Annotated[bool, Flag("Print the best trials as JSON.", "json")] = False,
) -> None:
    """Try many settings. SWEEP is the name of a sweep or the path of a YAML file.

    Without SWEEP and options the named sweeps are listed. Each trial is an ordinary run with its
    own seed. Ctrl-C and SIGTERM stop a sweep cleanly. After them, or after a crash, --resume leaves
    finished trials alone and continues the others from their checkpoints. If trials have different
    tasks, for instance several objectives, each task has its own best trial.

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
      metasched tune
      metasched tune smoke
      metasched tune learning-rate --trials 16 --set task.workload.load=1.1
      metasched tune my-sweep.yaml --address 10.0.0.5:6379
      metasched tune --resume runs/learning-rate-20260101-120000-s0
    """
    if options == Tune():
        print_list(_sweeps())
        return
    from tune_jobs.figures import draw_figure
    from tune_jobs.sweeps.launching import launch_sweep, report

    result = launch_sweep(options, draw_figure)
    report(result, as_json)
    if result.exit_status:  # a trial failed, or a signal has stopped the sweep
        raise click.exceptions.Exit(result.exit_status)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
