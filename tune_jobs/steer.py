"""``metasched steer``: a policy in charge of the queue of a live site."""

from typing import Any

import click

from tune_jobs.site.options import max_wait_option, site_options
from tune_jobs.terminal.options import CONTEXT, POSITIVE, count
from tune_jobs.terminal.task_command import LogCommand


@click.command(name="steer", cls=LogCommand, context_settings=CONTEXT)
@click.argument("policy", metavar="[POLICY|RUN]", required=False)
@click.option(
    "--mode",
    type=click.Choice(["release", "priority"]),
    default="release",
    help="release: release each held job when it is to start. priority: set the jobs' priorities, "
    "and let Slurm start them (priority/multifactor only).",
)
@click.option(
    "--act", is_flag=True, help="Act on the decisions; without --act they are only recorded."
)
@site_options
@max_wait_option("5d")
@click.option(
    "--rehold",
    "rehold_s",
    type=count(0),
    default=30,
    metavar="SECONDS",
    help="Hold a released job again if Slurm has not started it after this time. Until then no "
    "other job is released. 0: never hold again, and do not wait.",
)
@click.option(
    "--hold-new",
    is_flag=True,
    help="Hold jobs that were submitted without a hold. A submission plugin does this better.",
)
@click.option("--until-empty", is_flag=True, help="End as soon as no job runs or waits.")
@click.option(
    "--watchdog",
    "watchdog_s",
    type=POSITIVE,
    default=300.0,
    metavar="SECONDS",
    help="After this time without a completed tick, all held jobs are released.",
)
@click.option(
    "--squeue-timeout",
    "squeue_timeout_s",
    type=POSITIVE,
    metavar="SECONDS",
    help="Time that squeue may take. By default 60, or less with a shorter --watchdog.",
)
@click.option(
    "--as-root",
    is_flag=True,
    help="Act as root, if there is no account with AdminLevel=Operator.",
)
@click.option(
    "--release-all",
    "release_everything",
    is_flag=True,
    help="Release all held jobs and exit.",
)
def command(**options: Any) -> int:
    """Let a policy decide which jobs a live Slurm starts, behind a guard and a watchdog.

    POLICY is a rule such as saf:easy, the name of a pretrained policy, or the folder of a run.
    Without --act it is a dry run. Only jobs start that fit now and that Slurm would not refuse, and
    jobs that have waited longer than --max-wait or --longest-wait go first. Jobs that an
    administrator holds are never touched. Each decision is recorded with its state before the
    command acts, and --repeat repeats all decisions.

    Release mode needs jobs that are submitted held (sbatch --hold, or a plugin), and an account
    with AdminLevel=Operator. All held jobs are released when the command ends, for whatever reason,
    and when Slurm does not let it complete a tick for too long.

    \b
    Examples:
      metasched steer saf:easy --out steer.jsonl                  # a dry run
      metasched steer saf:easy --act --longest-wait 86400 --partition batch --out steer.jsonl
      metasched steer hpc-order --mode priority --act --out steer.jsonl
      metasched steer saf:easy --repeat steer.jsonl
      metasched steer --release-all --partition batch
    """
    from tune_jobs.site.reporting import report_steer

    return report_steer(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
