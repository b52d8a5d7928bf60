"""``metasched specialists``: what a policy reaches that was trained for a held-out task alone."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT, SEED, OutPath, count, held_out_option


@click.command(name="specialists", context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--tasks", "num_tasks", type=count(), default=15, help="Held-out tasks, from the first."
)
@click.option("--of", "num_study_tasks", type=count(), default=40, help="--tasks of the methods.")
@click.option("--task-seed", type=SEED, default=0, help="Seed of the tasks.")
@click.option(
    "--iterations", "num_iterations", type=count(), default=100, help="Iterations on each task."
)
@held_out_option
@click.option(
    "--runs",
    type=OutPath(file_okay=False),
    default=Path("runs/specialists"),
    help="Folder for the specialists' runs.",
)
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    default=Path("adaptation"),
    help="Folder of the rows of metasched study, where specialists.csv is written, too.",
)
def command(**options: Any) -> None:
    """Train the joint policy of RUN on, for each of some held-out tasks by itself.

    The specialists know their task's objective, weights and workload for as long as they train, on
    jobsets of the task's training split. What they cost bounds what adaptation can reach: the
    figure headroom says how much of the way from the joint policy to them it goes. Specialists
    that are there already are not trained again.

    \b
    Examples:
      metasched specialists runs/joint-0 --tasks 15
      metasched figure headroom --rows adaptation
    """
    from tune_jobs.adapting.specialists import train_specialists

    train_specialists(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
