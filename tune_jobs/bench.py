"""``metasched bench``: throughput against a reference that is measured in the same run."""

from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT, POSITIVE
from tune_jobs.terminal.output import json_option

SUBJECTS = (
    *("simulator", "replay", "sampling", "training"),
    *("runners", "utility", "tracking"),
)


@click.command(name="bench", context_settings=CONTEXT)
@click.argument("subjects", metavar="[SUBJECT]...", nargs=-1, type=click.Choice(SUBJECTS))
@json_option("Print one JSON list and nothing else.")
@click.option(
    "--seconds",
    type=POSITIVE,
    default=4.0,
    help="How long each number is measured, warm-up apart.",
)
@click.option(
    "--preset",
    metavar="PRESET|FILE",
    help="What the subjects training and runners train; by default deeprm and deeprm-maml, and "
    "deeprm-maml.",
)
def command(**options: Any) -> None:
    """Measure throughput. SUBJECT is simulator, replay, sampling or training; by default all.

    Every number stands beside a reference that is measured in turns with it, in the same process,
    and shown as the median of five rounds with the smallest and the largest. What is quoted and
    not measured is said to be. Numbers for one core count CPU time, so that other processes
    disturb them little. The subject utility makes figure 2 of utility accrual, nine policies in 50
    experiments with what they learn, and compares its server with one in plain Python.

    The subject runners compares iterations with 1, 2 and 4 runners, and says how much more two
    processes can do here that know nothing of each other.

    The subject tracking measures what recording in MLflow takes of an iteration of deeprm-ppo, in a
    local database and on a server that is up, down or slow, and that nothing is lost.

    \b
    Examples:
      metasched bench
      metasched bench simulator --seconds 10
      metasched bench replay
      metasched bench sampling training --json > bench.json
      metasched bench training --preset deeprm-ppo
      metasched bench training --preset deeprm-maml
      metasched bench runners --preset deeprm-maml
      metasched bench tracking
    """
    from tune_jobs.benchmarks.reporting import report_benchmarks

    report_benchmarks(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
