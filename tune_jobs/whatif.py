"""``metasched whatif``: what changes to a machine or its policy would do to the jobs of a log."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    decode_option,
    log_options,
    out_option,
    seed_option,
)
from tune_jobs.terminal.output import json_option
from tune_jobs.terminal.task_command import LogCommand


@click.command(name="whatif", cls=LogCommand, context_settings=CONTEXT)
@log_options
@click.option(
    "--change",
    "changes_made",
    metavar="KEY=VALUE",
    multiple=True,
    help="What is changed: policy, processors, memory, gpus, load, backfilling, max-wait, "
    "run-times, kill-at-estimate, or a setting such as task.world.priority.age. With --site also "
    "partition.NAME.nodes, partition.NAME.max-time, qos.NAME.jobs-per-user and other options of "
    "partitions and limits, and outage=BEGIN+LENGTH:NODES. Amounts are numbers, or changes to "
    "today's: +64, -64, +10%. Several changes are made together.",
)
@click.option(
    "--policy",
    metavar="NAME",
    help="Today's policy: a heuristic or a run directory. By default fcfs:easy, or that of "
    "--slurm-conf or --site.",
)
@click.option(
    "--slurm-conf",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The site's slurm.conf, for the size of the machine and the order of jobs. Your own "
    "options take precedence.",
)
@click.option(
    "--too-long",
    type=click.Choice(["drop", "cap"]),
    default="drop",
    help="With --site: jobs that ask for more time than they may have after the change are left "
    "out, or run for the longest time that they may have.",
)
@click.option("--each", is_flag=True, help="Show each of several changes alone, too.")
@seed_option("the policies' random numbers")
@decode_option("argmax", help_text="How learned policies choose.")
@json_option("Print everything as JSON.")
@out_option("Folder for all tables (CSV) and a figure with its numbers.")
def command(**options: Any) -> None:
    """Replay a log as today and after changes, and compare the two.

    FILE is a log as for replay. The tables show waits, bounded slowdown and utilization now and
    then, with the change and its 95% interval over weeks. Work that disappears with the change is
    said first. They also show them by size, user,
    account and partition, those first who gain most. The same jobs are compared on both sides. If
    the log records waits, a grade says how far the answers can be trusted: how near the simulation
    of today comes to what happened. A partition gets nodes like those that it has.

    \b
    Examples:
      metasched whatif example --change policy=sjf:easy
      metasched whatif example --change processors=+8 --change load=+10%
      metasched whatif example --change max-wait=5d --change load=0.8
    """
    from tune_jobs.figures.pictures import with_pictures
    from tune_jobs.replaying.what_if import WhatIfOptions, compare_changes
    from tune_jobs.terminal.progress import NoProgress, Progress

    as_json, out = options.pop("as_json"), options.pop("out")
    report = compare_changes(WhatIfOptions(**options), NoProgress() if as_json else Progress())
    with_pictures(report).show(as_json=as_json, out=out)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
