"""``metasched report``: all about a job log and its site on one page."""

from tune_jobs.commands import command_line
from tune_jobs.commands.logs import SiteReport
from tune_jobs.commands.task_command import LogCommand


class _ReportCommand(LogCommand):
    lists_world = False


@command_line.command("report", SiteReport, _ReportCommand)
def command(options: SiteReport) -> None:
    """Write a page about a job log: what it is, who waits, and what would help.

    FILE and options of the world are those of replay.

    \b
    Examples:
      metasched report example --max-wait 5d --change processors=+64 --out site
    """
    from tune_jobs.reports.site_report import report_site
    from tune_jobs.terminal.progress import Progress

    report_site(options, Progress()).show(out=options.out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
