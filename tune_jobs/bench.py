"""``metasched bench``: throughput against a reference that is measured in the same run."""

from functools import partial
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
    help="Time to measure each number, without the warm-up.",
)
@click.option(
    "--preset",
    metavar="PRESET|FILE",
    help="Preset of the subjects training and runners. By default training measures deeprm and "
    "deeprm-maml, and runners measures deeprm-maml.",
)
def command(**options: Any) -> None:
    """Measure throughput beside a reference.

    \b
    SUBJECT is by default each of the first four; the others take minutes:
      simulator  the simulators
      replay     a million jobs under FCFS with EASY
      sampling   rollouts with policies
      training   iterations of a training
      runners    iterations with 1, 2 and 4 runners, beside two independent processes
      utility    figure 2 of utility accrual, beside a server in plain Python
      tracking   what MLflow costs in an iteration of deeprm-ppo, and that no record is lost

    Each number and its reference are measured in turns in the same process. The table shows the
    median of five rounds, with the smallest and the largest, and marks quoted numbers. Numbers for
    one core count CPU time, which other processes hardly disturb.

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
    from tune_jobs.benchmarks.reporting import measure_subjects
    from tune_jobs.terminal.output import silent

    as_json = options.pop("as_json")
    say = silent if as_json else partial(click.echo, err=True)
    measure_subjects(**options, say=say).show(as_json=as_json)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
