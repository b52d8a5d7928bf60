"""``metasched shadow``: what a policy would start at a live site, beside what the site does."""

from tune_jobs.commands import command_line
from tune_jobs.commands.site import Shadow
from tune_jobs.commands.task_command import LiveCommand


@command_line.command("shadow", Shadow, LiveCommand)
def command(options: Shadow) -> int:
    """Print which jobs a policy would start at a live Slurm, and change nothing.

    POLICY is a rule such as saf:easy, the name of a pretrained policy, or the folder of a run. On a
    terminal, each tick is a table of the waiting jobs. To a pipe, and to --out, each tick is one
    line of JSON with the state of the site, the jobs that the policy would start now, and their
    scores. It also has the jobs that the policy or a limit delays although they fit, with the
    reason and the time. Another field shows how far Slurm did the same since the last tick. The
    command only needs the right to see jobs. If the controller does not answer, it tries again
    after a pause.

    --starts LOG adds when each waiting job will start, with intervals. The queue is simulated many
    times, with the nodes, partitions, limits and reservations of the site. Run times are drawn from
    the log: how far estimates of the user, of similar jobs and of the site were off. Later jobs are
    stretches of the log. The intervals are corrected by how well this worked in the log. On a
    record without the site's rules the machine is one pool; there --max-wait adds the latest start
    that the bound guarantees.

    \b
    Examples:
      metasched shadow saf:easy --out shadow.jsonl
      metasched shadow fcfs:easy --starts jobs.txt --ticks 1        # when jobs will start
      metasched shadow sjf:easy --repeat shadow.jsonl
      metasched shadow sjf:easy --simulate example --speed 600 --tick 1
    """
    from tune_jobs.site.reporting import report_shadow

    return report_shadow(options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
