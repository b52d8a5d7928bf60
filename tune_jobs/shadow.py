"""``metasched shadow``: what a policy would start at a live site, beside what the site does."""

from typing import Annotated

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.site import Shadow
from tune_jobs.commands.task_command import LiveCommand


@command_line.command("shadow", Shadow, LiveCommand)
def command(
    options: Shadow,
    *,
    json: Annotated[bool, Flag("Print lines of JSON on a terminal, too.")] = False,
) -> int:
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
      metasched shadow fcfs:easy --starts jobs.txt --tick 60
      metasched shadow sjf:easy --repeat shadow.jsonl
      metasched shadow sjf:easy --simulate example --speed 600 --tick 1
    """
    from tune_jobs.site.reporting import report_shadow

    return report_shadow(options, json)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
