"""``metasched specialists``: what a policy reaches that was trained for a held-out task alone."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT, SEED, OutPath, count, held_out_option


@click.command(name="specialists", context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--tasks",
    "num_tasks",
    type=count(),
    default=15,
    help="Number of held-out tasks, starting with the first.",
)
@click.option(
    "--of", "num_study_tasks", type=count(), default=40, help="The --tasks of metasched study."
)
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
    help="Folder with the rows of metasched study; specialists.csv is written there.",
)
def command(**options: Any) -> None:
    """Train a specialist for each of some held-out tasks, from the joint policy of RUN.

    A specialist trains on its task alone, with its objective, weights and workload, on jobsets of
    the task's training split. Its cost bounds what adaptation can reach: the figure headroom shows
    how much of the way from the joint policy to the specialist adaptation covers. Existing
    specialists are not trained again.

    \b
    Examples:
      metasched specialists runs/joint-0 --tasks 15
      metasched figure headroom --rows adaptation
    """
    from tune_jobs.adapting.specialists import train_specialists
    from tune_jobs.terminal.progress import Progress

    train_specialists(**options, progress=Progress()).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
