"""``metasched trace``: what stands in a job log."""

from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.terminal.options import CONTEXT
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import TaskCommand


@click.command(name="trace", cls=TaskCommand, context_settings=CONTEXT)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting of the machine, or how the log is read, for instance "
    "task.workload.stretch=0.5.",
)
@click.option(
    "--hash-users",
    is_flag=True,
    help="Show and keep users and groups as hashes.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Replay the log as the site schedules, and show how near simulated waits come to the "
    "recorded ones.",
)
@click.option(
    "--rule",
    "names",
    metavar="NAME",
    multiple=True,
    help="With --calibrate: how the site schedules; can be repeated to see which comes nearest. By "
    "default priority:conservative, which is Slurm's multifactor priority with backfilling; "
    "--set task.world.priority.age=500 says a weight of the site.",
)
@click.option(
    "--slurm-conf",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --calibrate: the site's slurm.conf, which says how large the machine is and how it "
    "orders jobs, as far as you do not say it.",
)
@json_option("Print everything as JSON.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for all tables (CSV), and a picture with the numbers that it was drawn from.",
)
def command(**options: Any) -> None:
    """Describe a job log before anything is trained on it.

    FILE is a log in the Standard Workload Format, a CSV file in seconds, an export of Slurm's sacct
    --parsable2 or a file of its jobcomp/filetxt, plain or with gzip. You see its span, jobs and
    users, what was left out and why, run times, sizes, how good estimates are, and week by week how
    much work came and how busy the machine was. Queues and use are as recorded; where the log does
    not say how long jobs waited, they are those of first come, first served with EASY backfilling.

    \b
    Examples:
      metasched trace jobs.csv --processors 16 --gpus 4
      metasched trace jobs.csv --processors 16 --gpus 4 --out jobs-described
      metasched trace jobs.csv --json
      metasched trace jobs.txt --processors 512 --calibrate --rule priority:easy,fcfs:easy
      metasched trace jobs.txt --slurm-conf slurm.conf --calibrate
    """
    if options.pop("calibrate"):
        from tune_jobs.replaying.calibration import report_calibration

        report_calibration(**options, draw=_draw_calibration)
        return
    if options.pop("names") or options.pop("slurm_conf"):
        raise InputError("--rule and --slurm-conf say how the site schedules; add --calibrate")
    from tune_jobs.replaying.trace_report import report_trace

    report_trace(**options, draw=_draw)


def _draw(table: Path, image: Path) -> None:
    from tune_jobs.figures.logs import draw_log

    draw_log(table, image)


def _draw_calibration(table: Path, image: Path) -> None:
    from tune_jobs.figures.logs import draw_calibration

    draw_calibration(table, image)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
