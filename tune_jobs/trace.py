"""``metasched trace``: what is in a job log, before anything is trained on it."""

from tune_jobs.commands import command_line
from tune_jobs.commands.logs import Trace
from tune_jobs.commands.shared import AsJson
from tune_jobs.commands.task_command import LogCommand


class _TraceCommand(LogCommand):
    without = ("max-wait",)


@command_line.command("trace", Trace, _TraceCommand)
def command(options: Trace, *, as_json: AsJson = False) -> None:
    """Describe a job log before anything is trained on it.

    FILE is a log as for replay. The report shows span, jobs, users,
    run times, sizes, the quality of estimates, and excluded rows with the reason. For each week it
    shows the submitted work and the utilization. Queue and utilization are as recorded. If the log
    has no waits, they are those of first come, first served with EASY backfilling.

    \b
    Examples:
      metasched trace example
      metasched trace example --out described
    """
    from tune_jobs.figures.pictures import with_pictures
    from tune_jobs.replaying.trace_report import describe_log

    with_pictures(describe_log(options)).show(as_json=as_json, out=options.out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
