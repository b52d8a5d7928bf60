"""``metasched steer``: a policy in charge of the queue of a live site."""

from typing import Any

import click

from tune_jobs.site.options import max_wait_option, site_options
from tune_jobs.terminal.options import CONTEXT, POSITIVE, count
from tune_jobs.terminal.task_command import TaskCommand


@click.command(name="steer", cls=TaskCommand, context_settings=CONTEXT)
@click.argument("policy", metavar="POLICY|RUN", required=False)
@click.option(
    "--mode",
    type=click.Choice(["release", "priority"]),
    default="release",
    help="release: held jobs are released when they are to start. priority: jobs are ranked, and "
    "Slurm starts them (priority/multifactor only).",
)
@click.option("--act", is_flag=True, help="Do it. Without this all is decided, and nothing done.")
@site_options
@max_wait_option("5d")
@click.option(
    "--rehold",
    "rehold_s",
    type=count(0),
    default=30,
    metavar="SECONDS",
    help="Hold a released job again if Slurm has not started it after so long. Until then nothing "
    "else is released. 0: never, and releases do not wait for each other.",
)
@click.option(
    "--hold-new",
    is_flag=True,
    help="Hold jobs that were submitted without a hold. A plugin at submission does it better.",
)
@click.option(
    "--until-empty", is_flag=True, help="End when nothing runs or waits, and not when you stop it."
)
@click.option(
    "--watchdog",
    "watchdog_s",
    type=POSITIVE,
    default=60.0,
    metavar="SECONDS",
    help="Without a sign of life for so long, another process releases everything.",
)
@click.option(
    "--as-root",
    is_flag=True,
    help="Act as root, where there is no account with AdminLevel=Operator.",
)
@click.option(
    "--release-all",
    "release_everything",
    is_flag=True,
    help="Release all held jobs, steer nothing, and end.",
)
def command(**options: Any) -> int:
    """Let a policy decide which jobs a live Slurm starts, behind a guard and a watchdog.

    POLICY is a rule, such as saf:easy, the name of a trained policy, or a run. A dry run
    unless you say --act. Only jobs that fit now start; who has waited longer than
    --max-wait or --longest-wait goes first. Jobs that an administrator holds are never touched.
    Every decision is recorded with the state that it came from before anything is done, and
    --repeat decides on all of them again.

    Release mode needs jobs that are submitted held (sbatch --hold, or a plugin), and an account
    with AdminLevel=Operator. When this ends, in whatever way, the watchdog releases all held jobs.

    \b
    Examples:
      metasched steer saf:easy --out steer.jsonl                  # a dry run
      metasched steer saf:easy --act --longest-wait 86400 --partition batch --out steer.jsonl
      metasched steer hpc-no-worse --mode priority --act --out steer.jsonl
      metasched steer saf:easy --repeat steer.jsonl
      metasched steer --release-all --partition batch
    """
    from tune_jobs.site.reporting import report_steer

    return report_steer(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
