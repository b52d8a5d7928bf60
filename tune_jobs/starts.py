"""``metasched starts``: when the jobs that wait at a site will start, and how sure that is."""

from typing import Annotated

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.site import Starts
from tune_jobs.commands.task_command import LogCommand


class _StartsCommand(LogCommand):
    without = (
        *("processors", "memory", "gpus", "site"),  # as Slurm reports them
        *("backfilling", "kill-at-estimate", "run-times"),
    )


@command_line.command("starts", Starts, _StartsCommand)
def command(
    options: Starts,
    *,
    as_json: Annotated[bool, Flag("Print all times (Unix time) as JSON.", "json")] = False,
) -> None:
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

    report_starts(options).show(as_json=as_json)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
