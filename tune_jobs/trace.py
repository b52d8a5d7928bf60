"""``metasched trace``: what stands in a job log."""

from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.terminal.options import CONTEXT, log_options, out_option
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import LogCommand


class _TraceCommand(LogCommand):
    without = ("max-wait",)


@click.command(name="trace", cls=_TraceCommand, context_settings=CONTEXT)
@log_options
@click.option(
    "--calibrate",
    is_flag=True,
    help="Replay the log under the site's rule, and compare the simulated waits with the recorded "
    "ones.",
)
@click.option(
    "--rule",
    "names",
    metavar="NAME",
    multiple=True,
    help="With --calibrate: the site's rule; can be repeated to see which fits best. The default "
    "is priority:conservative, Slurm's multifactor priority with backfilling; --set "
    "task.world.priority.age=500 sets a weight of the site.",
)
@click.option(
    "--slurm-conf",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --calibrate: the site's slurm.conf, for the size of the machine and the order of "
    "jobs. Your own options take precedence.",
)
@json_option("Print everything as JSON.")
@out_option("Folder for all tables (CSV) and a figure with its numbers.")
def command(**options: Any) -> None:
    """Describe a job log before anything is trained on it.

    FILE is a log in the Standard Workload Format, a CSV file in seconds, or an accounting log of
    PBS. It can also be an export of Slurm's sacct (--parsable2 or --json) or a file of its
    jobcomp/filetxt. All of them may be compressed with gzip. The report shows span, jobs, users,
    run times, sizes, the quality of estimates, and excluded rows with the reason. For each week it
    shows the submitted work and the utilization. Queue and utilization are as recorded. If the log
    has no waits, they are those of first come, first served with EASY backfilling.

    \b
    Examples:
      metasched trace example
      metasched trace example --out described
      metasched trace example --json
      metasched trace example --calibrate --rule priority:easy,fcfs:easy
    """
    from tune_jobs.figures.pictures import with_pictures
    from tune_jobs.replaying.choices import LogOptions

    calibrate, names, slurm_conf, as_json, out = (
        options.pop(name) for name in ("calibrate", "names", "slurm_conf", "as_json", "out")
    )
    if calibrate:
        from tune_jobs.replaying.calibration import CalibrationOptions, calibrate_log

        report = calibrate_log(CalibrationOptions(**options, names=names, slurm_conf=slurm_conf))
        with_pictures(report).show(as_json=as_json, out=out)
        return
    if names or slurm_conf:
        raise InputError("--rule and --slurm-conf describe how the site schedules; add --calibrate")
    from tune_jobs.replaying.trace_report import describe_log

    with_pictures(describe_log(LogOptions(**options))).show(as_json=as_json, out=out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
