"""``metasched record``: what became of each consumer, to learn from without a cluster."""

from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    ZERO_OR_MORE,
    OutPath,
    count,
    seed_option,
    set_option,
)


@click.command(name="record", context_settings=CONTEXT)
@click.argument("source", metavar="POLICY")
@click.argument("path", metavar="FILE", type=OutPath(dir_okay=False))
@set_option("training.advisor=flat", "the preset")
@click.option("--jobsets", "num_jobsets", type=count(1), default=16, help="Training jobsets.")
@click.option("--episodes", type=count(1), default=8, help="Episodes of each jobset.")
@click.option(
    "--noise",
    type=ZERO_OR_MORE,
    default=0.5,
    help="Standard deviation by which the weights of all actors of an episode are moved, so that "
    "records say which are better.",
)
@seed_option("the noise")
def command(**options: Any) -> None:
    """Write the record of every consumer that agents of the world panda serve to FILE, as Parquet.

    POLICY is a run, or a preset or YAML file whose agents are as a training begins. A record has
    the specification, the weights of the actor, arrival and departure, wait and use, the nodes and
    the reward. train learns from such records alone with training.algorithm=offline.

    \b
    Examples:
      metasched record panda-elastic records.parquet
      metasched record runs/panda-elastic-s0 records.parquet --jobsets 8 --noise 1
    """
    from tune_jobs.replaying.consumer_records import record_consumers

    record_consumers(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
