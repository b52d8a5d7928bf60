"""``metasched generate``: jobs of a generator as a log, to try what asks for one."""

from tune_jobs.commands import command_line
from tune_jobs.commands.logs import Generate
from tune_jobs.commands.task_command import TaskCommand


class _GenerateCommand(TaskCommand):
    without = ("log-format", "time-zone", "columns", "partition", "missing-limits")  # no log


@command_line.command("generate", Generate, _GenerateCommand)
def command(options: Generate) -> None:
    """Write generated jobs to FILE: a CSV file, or a log in SWF if its name ends in .swf.

    The same seed gives the same jobs. `trace`, `replay`, `compare` and `train` read the
    file.

    \b
    Examples:
      metasched generate generated.csv
      metasched generate site.swf --jobs 10000 --set task.workload.estimates=tsafrir --seed 3
      metasched generate lognormal.csv --processors 64 --set task.workload.kind=lognormal
    """
    from tune_jobs.replaying.generating import generate_log

    generate_log(options).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
