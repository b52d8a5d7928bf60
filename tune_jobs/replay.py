"""``metasched replay``: a whole job log under policies."""

from dataclasses import fields
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    count,
    decode_option,
    log_options,
    out_option,
    seed_option,
)
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import LogCommand


@click.command(name="replay", cls=LogCommand, context_settings=CONTEXT)
@log_options
@click.option(
    "--policy",
    "names",
    metavar="NAME",
    multiple=True,
    help="A heuristic of the world, a run directory or a glob of run directories. Can be repeated; "
    "commas separate several. By default the world's baselines.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Compare the waits under heuristics with the recorded ones, as trace --calibrate does, "
    "and judge whether the log can be replayed.",
)
@click.option(
    "--starts",
    is_flag=True,
    help="Measure how far start times can be foreseen under each policy: at moments of the later "
    "half of the log, from what was known by then. Coverage and width of intervals, and errors "
    "beside those of the users' estimates, by size.",
)
@click.option(
    "--instants",
    "num_instants",
    type=count(10),
    default=1000,
    help="With --starts: moments of the log; those of the earlier half correct the intervals.",
)
@click.option(
    "--from",
    "since",
    metavar="TIME",
    default="",
    help="Begin of what pictures over time show: a date such as 2024-03-01 (UTC), or a time since "
    "the first submission such as 5d. By default all, and of a Gantt chart the fullest week.",
)
@click.option("--to", "until", metavar="TIME", default="", help="End of what they show, likewise.")
@seed_option("the policies' random numbers")
@decode_option("argmax", help_text="How learned policies choose.")
@json_option("Print everything as JSON.")
@out_option(
    "Folder for schedules and tables (CSV), and pictures of them: utilization and queue, who "
    "waits, waits by size and hour, changes of waits, and a Gantt chart for each policy."
)
def command(**options: Any) -> None:
    """Play a whole job log under policies, and compare their schedules.

    FILE is a log in the Standard Workload Format, a CSV file in seconds, or an accounting log of
    PBS. It can also be an export of Slurm's sacct (--parsable2 or --json) or a file of its
    jobcomp/filetxt. All of them may be compressed with gzip. The tables show bounded slowdown,
    waits, turnaround, utilization and makespan, for all jobs, by size and by user. The first row is
    the recorded schedule, if the log has waits. The machine is empty when the log begins. The
    backfilling of a heuristic follows a colon: strict, skip, easy or conservative.

    \b
    Examples:
      metasched replay example --policy fcfs:easy --policy sjf:easy
      metasched replay example --max-wait x2 --policy fcfs,saf,hpc-order --out replayed
      metasched replay example --out replayed --from 1d --to 3d
      metasched replay example --kill-at-estimate true --json
      metasched replay example --policy fcfs:easy --starts
    """
    from tune_jobs.figures.pictures import with_pictures
    from tune_jobs.replaying.replay_report import ReplayOptions, replay_log
    from tune_jobs.terminal.progress import NoProgress, Progress

    as_json, out, num_instants, starts, calibrate = (
        options.pop(name) for name in ("as_json", "out", "num_instants", "starts", "calibrate")
    )
    progress = NoProgress() if as_json else Progress()
    if starts and calibrate:
        raise click.UsageError("--starts and --calibrate measure two things; give one of them")
    if (options["since"] or options["until"]) and (starts or calibrate or out is None):
        raise click.UsageError(
            "--from and --to say what pictures of schedules show; give --out FOLDER for these"
        )
    if calibrate:
        from tune_jobs.replaying.calibration import CalibrationOptions, calibrate_log

        names = {field.name for field in fields(CalibrationOptions)}
        of_log = {name: options[name] for name in options.keys() & names}
        report = calibrate_log(CalibrationOptions(**of_log))
    elif starts:
        from tune_jobs.replaying.start_report import foresee_starts

        report = foresee_starts(ReplayOptions(**options), num_instants, progress)
    else:
        report = replay_log(ReplayOptions(**options), progress)
    with_pictures(report).show(as_json=as_json, out=out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
