"""``python -m tune_jobs.soak``, or ``make soak``: does anything grow while training goes on?"""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT


@click.command(name="soak", context_settings=CONTEXT)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    help="How long, from the first iteration on.",
)
@click.option(
    "--every", "every_s", type=click.FloatRange(0.1), default=5.0, help="Seconds between readings."
)
@click.option("--preset", metavar="PRESET|FILE", default="deeprm-ppo", help="What is trained.")
@click.option("--runners", type=click.IntRange(0), default=2, help="Sampling processes.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/soak"),
    help="A new folder for the run, logs, readings.csv, growth.csv and soak.png.",
)
def command(**options: Any) -> None:
    """Train with an MLflow server for half an hour, and fail if a process grows too fast.

    Memory, descriptors, threads and Python's blocks of every process are read every few seconds.
    The first third is warm-up; the slope of the rest is compared with a limit. Status 1 means that
    something grows faster.

    \b
    Examples:
      make soak
      make soak ARGS='--minutes 5 --preset deeprm-maml'
    """
    from tune_jobs.benchmarks.soak_report import report_soak

    report_soak(**options, draw=_draw)


def _draw(*request: Any) -> None:
    from tune_jobs.figures.soak import draw_soak

    draw_soak(*request)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
