"""``metasched shadow``: what a policy would start at a live site, beside what the site does."""

from typing import Any

import click

from tune_jobs.site.options import max_wait_option, site_options
from tune_jobs.terminal.options import CONTEXT, count
from tune_jobs.terminal.task_command import TaskCommand


@click.command(name="shadow", cls=TaskCommand, context_settings=CONTEXT)
@click.argument("policy", metavar="POLICY|RUN")
@site_options
@max_wait_option("0")
@click.option(
    "--nodes-every",
    "nodes_every_s",
    type=count(0),
    default=60,
    metavar="SECONDS",
    help="How often sinfo is asked, beside one squeue each tick; 0: at each tick. In between, the "
    "jobs say what is free on which node.",
)
def command(**options: Any) -> int:
    """Say what a policy would start at a live Slurm, and change nothing.

    POLICY is a rule, such as saf:easy, the name of a trained policy, or the folder of a run. Each
    tick is one line of JSON: the state that was read, which jobs the policy would start
    now, with what score, which it holds back although they fit, why and until when, and how far
    Slurm did the same since the last tick. Read by squeue and sinfo, it needs no right but to see
    jobs. A controller that does not answer is asked again after a pause.

    \b
    Examples:
      metasched shadow saf:easy --out shadow.jsonl
      metasched shadow hpc-universal --partition batch --tick 30 --hash-users
      metasched shadow sjf:easy --repeat shadow.jsonl
      metasched shadow sjf:easy --simulate jobs.csv --processors 16 --gpus 4 --speed 600 --tick 1
    """
    from tune_jobs.site.reporting import report_shadow

    return report_shadow(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
