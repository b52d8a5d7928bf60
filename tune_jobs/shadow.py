"""``metasched shadow``: what a policy would start at a live site, beside what the site does."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.site.options import futures_options, max_wait_option, site_options
from tune_jobs.terminal.options import CONTEXT, count
from tune_jobs.terminal.task_command import LogCommand


@click.command(name="shadow", cls=LogCommand, context_settings=CONTEXT)
@click.argument("policy", metavar="POLICY|RUN")
@site_options
@max_wait_option("0")
@click.option(
    "--nodes-every",
    "nodes_every_s",
    type=count(0),
    default=60,
    metavar="SECONDS",
    help="Time between two calls of sinfo; 0: one in each tick. In between, the free nodes "
    "follow from the jobs that squeue lists in each tick.",
)
@click.option(
    "--starts",
    "past",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="LOG",
    help="Also write when each waiting job will start, as the command starts does with --past LOG.",
)
@futures_options
@click.option("--json", "as_json", is_flag=True, help="Print lines of JSON on a terminal, too.")
def command(**options: Any) -> int:
    """Print which jobs a policy would start at a live Slurm, and change nothing.

    POLICY is a rule such as saf:easy, the name of a pretrained policy, or the folder of a run. On a
    terminal, each tick is a table of the waiting jobs. To a pipe, and to --out, each tick is one
    line of JSON with the state of the site, the jobs that the policy would start now, and their
    scores. It also has the jobs that the policy or a limit delays although they fit, with the
    reason and the time. Another field shows how far Slurm did the same since the last tick. The
    command only needs the right to see jobs. If the controller does not answer, it tries again
    after a pause.

    \b
    Examples:
      metasched shadow saf:easy --out shadow.jsonl
      metasched shadow hpc-order --partition batch --tick 30 --hash-users
      metasched shadow fcfs:easy --starts jobs.txt --tick 60
      metasched shadow sjf:easy --repeat shadow.jsonl
      metasched shadow sjf:easy --simulate example --speed 600 --tick 1
    """
    from tune_jobs.site.reporting import report_shadow

    return report_shadow(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
