"""``metasched compare``: learned policies and heuristics on the same unseen jobsets."""

from typing import Any

import click

from tune_jobs.terminal.options import (
    COMPARISON_FIGURE,
    COMPARISON_TABLE,
    CONTEXT,
    at_option,
    limit_option,
    out_option,
    runner_options,
    task_options,
)
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import TaskCommand


@click.command(name="compare", cls=TaskCommand, context_settings=CONTEXT)
@click.option(
    "--policies",
    "names",
    metavar="NAME,...",
    multiple=True,
    help="Heuristics, run directories and globs of them; can be repeated. By default all "
    "heuristics of the world. rollout:POLICY:FUTURES improves a policy by playing on through "
    "sampled futures, which is slow.",
)
@at_option
@click.option(
    "--objective",
    help="Objective that ranks the policies, also a mixture 'W NAME + W NAME'; by default the "
    "config's objective.",
)
@click.option(
    "--guard",
    is_flag=True,
    help="Add a guarded line for each learned policy: the policy where it is proven better than "
    "the best heuristic, and that heuristic elsewhere.",
)
@limit_option
@click.option(
    "--protocol",
    "protocols",
    metavar="NAME,...",
    multiple=True,
    help="Jobsets to compare on: unseen (the default), and for a log also rlscheduler (ten "
    "published sequences of 1,024 jobs) and whole (the log as one jobset). Each has its own table.",
)
@task_options
@click.option(
    "--wide", is_flag=True, help="Show all columns; they need a terminal wider than 80 characters."
)
@json_option("Print the rows as JSON.")
@out_option(f"Folder for {COMPARISON_TABLE} and {COMPARISON_FIGURE}.")
@click.option(
    "--track/--no-track",
    default=None,
    help="--track records the comparison in MLflow as a separate run, and needs --out. In any "
    "case it is added to the description and files of the compared runs, if they are recorded; "
    "--no-track prevents that.",
)
@runner_options
def command(**options: Any) -> None:
    """Compare policies on the same unseen jobsets.

    Heuristics are those of the task's world. Some take a number, for instance tetris:0.002; without
    it, the number is tuned on validation jobsets. Runs that differ only in their seed share one
    line.

    \b
    Examples:
      metasched compare --loads 0.7,1.1,1.3
      metasched compare --policies 'sjf,tetris,runs/deeprm-*' --loads 0.7 --jobsets 200
      metasched compare --policies sjf,tetris,runs/MY_RUN --loads 1.1 --out comparison --json
      metasched compare --loads 0.7 --window 500 --warmup 100 --jobsets 200
      metasched compare --policies sjf,hold,runs/MY_RUN --loads 0.3,1.5 --guard
      metasched compare --loads 0.1,0.3,0.5,0.7,0.9,1.1 --runners 2
    """
    from tune_jobs.figures import draw_comparison
    from tune_jobs.measuring.reporting import ComparisonOptions, report_comparison

    shown = {name: options.pop(name) for name in ("as_json", "wide", "out", "track")}
    report_comparison(ComparisonOptions(**options), **shown, draw=draw_comparison)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
