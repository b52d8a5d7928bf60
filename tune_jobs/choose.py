"""``metasched choose``: the best of runs that differ in their seed, as a policy to hand on."""

from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT, SEED, OutPath, count
from tune_jobs.terminal.output import json_option


@click.command(name="choose", context_settings=CONTEXT)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--jobsets",
    "num_jobsets",
    type=count(2),
    default=200,
    help="Jobsets of the family, or of the task, that runs are judged on.",
)
@click.option(
    "--seed",
    type=SEED,
    default=1000,
    help="Seed of these jobsets; take one that no run was trained with.",
)
@json_option("Print the rows as JSON.")
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    help="Folder for the best policy; its weights are text.",
)
def command(**options: Any) -> None:
    """Choose among runs of evolution strategies, on jobsets that none was trained on.

    Runs are judged as candidates are in training: by the mean of ln(cost), and where there are
    limits by how far the policy is beyond them. What they cost on your own jobs plays no part.
    RUN is a folder, a glob such as 'runs/hpc-universal-*', or the name of one that comes along.

    \b
    Examples:
      metasched choose hpc-universal --jobsets 20 --out chosen
    """
    from tune_jobs.runs.choosing import choose_run

    choose_run(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
