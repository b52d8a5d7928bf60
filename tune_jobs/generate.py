"""``metasched generate``: jobs of a generator as a log, to try what asks for one."""

from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    OutPath,
    count,
    force_option,
    seed_option,
    set_option,
)
from tune_jobs.terminal.task_command import TaskCommand


@click.command(name="generate", cls=TaskCommand, context_settings=CONTEXT)
@click.argument("path", metavar="FILE", type=OutPath(dir_okay=False))
@force_option
@click.option(
    "--config",
    "source",
    metavar="PRESET|FILE",
    default="hpc-order",
    help="World and jobs; by default Lublin's jobs on 256 processors.",
)
@set_option("task.workload.estimates=tsafrir")
@click.option("--jobs", "num_jobs", type=count(2), default=5000, help="Number of jobs.")
@seed_option("the jobs")
def command(**options: Any) -> None:
    """Write generated jobs to FILE: a CSV file, or a log in SWF if its name ends in .swf.

    The same seed gives the same jobs. `trace`, `replay`, `guard`, `compare` and `train` read the
    file.

    \b
    Examples:
      metasched generate generated.csv
      metasched generate site.swf --jobs 10000 --set task.workload.estimates=tsafrir --seed 3
      metasched generate lognormal.csv --processors 64 --set task.workload.kind=lognormal
    """
    from tune_jobs.replaying.generating import generate_log

    generate_log(**options).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
