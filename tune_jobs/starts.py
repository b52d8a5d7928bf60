"""``metasched starts``: when the jobs that wait at a site will start, and how sure that is."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.site.options import futures_options, max_wait_option
from tune_jobs.terminal.options import CONTEXT
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import LogCommand


class _StartsCommand(LogCommand):
    without = (
        *("processors", "memory", "gpus", "site"),  # as Slurm reports them
        *("backfilling", "kill-at-estimate", "run-times"),
    )


@click.command(name="starts", cls=_StartsCommand, context_settings=CONTEXT)
@click.argument("policy", metavar="POLICY|RUN")
@click.option(
    "--past",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="LOG",
    help="Log of the site, such as an export of sacct: how far estimates were off, what arrives.",
)
@click.option(
    "--partition",
    "partitions",
    metavar="NAME",
    multiple=True,
    help="Only jobs and nodes of this partition; can be repeated. By default all.",
)
@click.option(
    "--repeat",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Contact no Slurm: take the last state in a record of shadow.",
)
@max_wait_option("0")
@futures_options
@json_option("Print all times (Unix time) as JSON.")
def command(**options: Any) -> None:
    """Print when each waiting job will start under a policy, with intervals.

    POLICY is the policy that starts the jobs: a rule such as fcfs:easy, or a policy that orders
    jobs. The queue is simulated many times, with the nodes, partitions, limits and reservations of
    the site. Run times are drawn from the log: how far estimates of the user, of similar jobs and
    of the site were off. Later jobs are stretches of the log. The intervals are corrected by how
    well this worked in the log. Beside them is Slurm's own expectation, and what a job asks for
    that is not simulated. On a record without the site's rules the machine is one pool; there
    --max-wait adds the latest start that the bound guarantees.

    \b
    Examples:
      metasched starts fcfs:easy --past jobs.txt
      metasched starts hpc-order --past jobs.txt --max-wait 5d --json
    """
    from tune_jobs.site.starting import report_starts

    as_json = options.pop("as_json")
    report_starts(**options).show(as_json=as_json)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
