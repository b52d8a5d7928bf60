"""``metasched whatif``: what changes to a machine or its policy would do to the jobs of a log."""

from tune_jobs.commands import command_line
from tune_jobs.commands.logs import WhatIf
from tune_jobs.commands.shared import AsJson
from tune_jobs.commands.task_command import LogCommand


@command_line.command("whatif", WhatIf, LogCommand)
def command(options: WhatIf, *, as_json: AsJson = False) -> None:
    """Replay a log as today and after changes, and compare the two.

    FILE is a log as for replay. The tables show waits, bounded slowdown and utilization now and
    then, with the change and its 95% interval over weeks. Work that disappears with the change is
    said first. They also show them by size, user,
    account and partition, those first who gain most. If
    the log records waits, a grade says how far the answers can be trusted: how near the simulation
    of today comes to what happened. A partition gets nodes like those that it has.

    \b
    Examples:
      metasched whatif example --change policy=sjf:easy
      metasched whatif example --change processors=+8 --change load=+10%
    """
    from tune_jobs.figures.pictures import with_pictures
    from tune_jobs.replaying.what_if import compare_changes
    from tune_jobs.terminal.progress import NoProgress, Progress

    report = compare_changes(options, NoProgress() if as_json else Progress())
    with_pictures(report).show(as_json=as_json, out=options.out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
