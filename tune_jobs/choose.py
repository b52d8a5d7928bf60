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
    help="Jobsets to judge the runs on, from their family or their task.",
)
@click.option(
    "--seed",
    type=SEED,
    default=1000,
    help="Seed of these jobsets; choose one that no run was trained with.",
)
@json_option("Print the rows as JSON.")
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    help="Folder for the best policy, whose weights are written as text.",
)
def command(**options: Any) -> None:
    """Choose the best run of an evolution strategy, on jobsets that no run was trained on.

    The score is that of candidates in training: the mean of ln(cost), plus a penalty for each
    violated limit. Your own jobs do not affect it. RUN is a folder, a glob such as
    'runs/hpc-order-*', or the name of a pretrained policy.

    \b
    Examples:
      metasched choose hpc-order --jobsets 20 --out chosen
    """
    from tune_jobs.runs.choosing import choose_run

    as_json = options.pop("as_json")
    choose_run(**options).show(as_json=as_json)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
