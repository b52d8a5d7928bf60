"""``metasched bench``: throughput against a reference that is measured in the same run."""

from functools import partial
from typing import Annotated

import click

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.results import Bench


@command_line.command("bench", Bench)
def command(
    options: Bench,
    *,
    as_json: Annotated[bool, Flag("Print one JSON list and nothing else.", "json")] = False,
) -> None:
    """Measure throughput beside a reference.

    \b
    SUBJECT is by default each of the first four; the last takes minutes:
      simulator  the simulators
      replay     a million jobs under FCFS with EASY
      sampling   rollouts with policies
      training   iterations of a training
      runners    iterations with 1, 2 and 4 runners, beside two independent processes

    Each number and its reference are measured in turns in the same process. The table shows the
    median of five rounds, with the smallest and the largest, and marks quoted numbers. Numbers for
    one core count CPU time, which other processes hardly disturb.

    \b
    Examples:
      metasched bench
      metasched bench simulator --seconds 10
      metasched bench sampling training --json > bench.json
      metasched bench runners --preset deeprm-maml
    """
    from tune_jobs.benchmarks.reporting import measure_subjects
    from tune_jobs.terminal.output import silent

    say = silent if as_json else partial(click.echo, err=True)
    preset = None if options.preset is None else str(options.preset)
    measure_subjects(options.subjects, options.seconds, preset, say).show(as_json=as_json)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
