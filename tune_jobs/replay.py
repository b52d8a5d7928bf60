"""``metasched replay``: a whole job log under policies."""

import click

from tune_jobs.commands import command_line
from tune_jobs.commands.logs import Replay
from tune_jobs.commands.shared import AsJson
from tune_jobs.commands.task_command import LogCommand


@command_line.command("replay", Replay, LogCommand)
def command(options: Replay, *, as_json: AsJson = False) -> None:
    """Play a whole job log under policies, and compare their schedules.

    FILE is a log in the Standard Workload Format, a CSV file in seconds, or an accounting log of
    PBS. It can also be an export of Slurm's sacct (--parsable2 or --json) or a file of its
    jobcomp/filetxt. All of them may be compressed with gzip. The tables show bounded slowdown,
    waits, turnaround, utilization and makespan, for all jobs, by size and by user. The first row is
    the recorded schedule, if the log has waits. The machine is empty when the log begins. The
    backfilling of a heuristic follows a colon: strict, skip, easy or conservative.

    \b
    Examples:
      metasched replay example --policies fcfs:easy,sjf:easy
      metasched replay example --max-wait x2 --policies fcfs,saf,hpc-order --out replayed
      metasched replay example --out replayed --from 1d --to 3d
      metasched replay example --policies fcfs:easy --starts
      metasched replay example --calibrate --policies priority:easy,fcfs:easy
    """
    from tune_jobs.figures.pictures import with_pictures
    from tune_jobs.terminal.progress import NoProgress, Progress

    progress = NoProgress() if as_json else Progress()
    starts, calibrate = options.starts, options.calibrate
    if starts and calibrate:
        raise click.UsageError("--starts and --calibrate measure two things; give one of them")
    if (options.since or options.until) and (starts or calibrate or options.out is None):
        raise click.UsageError(
            "--from and --to say what pictures of schedules show; give --out FOLDER for these"
        )
    if calibrate:
        from tune_jobs.replaying.calibration import calibrate_log

        report = calibrate_log(options, progress)
    elif starts:
        from tune_jobs.replaying.start_report import foresee_starts

        report = foresee_starts(options, progress)
    else:
        from tune_jobs.replaying.replay_report import replay_log

        report = replay_log(options, progress)
    with_pictures(report).show(as_json=as_json, out=options.out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
