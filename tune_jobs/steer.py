"""``metasched steer``: a policy in charge of the queue of a live site."""

from tune_jobs.commands import command_line
from tune_jobs.commands.site import Steer
from tune_jobs.commands.task_command import LiveCommand


@command_line.command("steer", Steer, LiveCommand)
def command(options: Steer) -> int:
    """Let a policy decide which jobs a live Slurm starts, behind a guard and a watchdog.

    POLICY is a rule such as saf:easy, the name of a pretrained policy, or the folder of a run.
    Without --act it is a dry run. Only jobs start that fit now and that Slurm would not refuse, and
    jobs that have waited longer than --max-wait go first. Jobs that an
    administrator holds are never touched. Each decision is recorded with its state before the
    command acts, and --repeat repeats all decisions.

    Release mode needs jobs that are submitted held (sbatch --hold, or a plugin), and an account
    with AdminLevel=Operator. All held jobs are released when the command ends, for whatever reason,
    and when Slurm does not let it complete a tick for too long.

    \b
    Examples:
      metasched steer saf:easy --out steer.jsonl                  # a dry run
      metasched steer saf:easy --act --max-wait 1d --partition batch --out steer.jsonl
      metasched steer hpc-order --mode priority --act --out steer.jsonl
      metasched steer saf:easy --repeat steer.jsonl
      metasched steer --release-all --partition batch
    """
    from tune_jobs.site.reporting import report_steer

    return report_steer(options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
