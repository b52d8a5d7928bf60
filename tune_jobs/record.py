"""``metasched record``: what became of each consumer, to learn from without a cluster."""

from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    ZERO_OR_MORE,
    OutPath,
    count,
    force_option,
    seed_option,
    set_option,
)


@click.command(name="record", context_settings=CONTEXT)
@click.argument("source", metavar="POLICY")
@click.argument("path", metavar="FILE", type=OutPath(dir_okay=False))
@force_option
@set_option("training.advisor=flat", "the preset")
@click.option("--jobsets", "num_jobsets", type=count(1), default=16, help="Training jobsets.")
@click.option("--episodes", type=count(1), default=8, help="Episodes of each jobset.")
@click.option(
    "--noise",
    type=ZERO_OR_MORE,
    default=0.5,
    help="Standard deviation of the noise that is added to the actors' weights in each episode, so "
    "that records show which weights are better.",
)
@seed_option("the noise")
def command(**options: Any) -> None:
    """Write a record of each consumer in the world panda to FILE, as Parquet.

    POLICY is a run, or a preset or YAML file, whose agents then have their initial weights. A
    record has the consumer's specification, the weights of its actor, arrival, departure, wait,
    use, nodes and reward. `train` with training.algorithm=offline learns from such records alone.

    \b
    Examples:
      metasched record panda-elastic records.parquet
      metasched record runs/panda-elastic-s0 records.parquet --jobsets 8 --noise 1
    """
    from tune_jobs.replaying.consumer_records import record_consumers

    record_consumers(**options).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
