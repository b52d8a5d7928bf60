"""Options that the commands at a site share. It imports nothing heavy, so that --help is quick."""

from pathlib import Path

import click

from tune_jobs.terminal.options import POSITIVE, Decorator, count, together


def max_wait_option(default: str) -> Decorator:
    """The bound on waits, which every policy keeps."""
    return click.option(
        "--max-wait",
        default=default,
        show_default=True,
        metavar="TIME",
        help="A job that has waited longer, such as 12h or 5d, goes first in the policy's plan, "
        "and all such jobs have room reserved; 0: never.",
    )


futures_options: Decorator = together(
    click.option(
        "--futures",
        "num_futures",
        type=count(2),
        default=100,
        help="Times that the queue is simulated.",
    ),
    click.option(
        "--instants",
        "num_instants",
        type=count(0),
        default=200,
        help="Moments of the log at which start times are checked once, to correct the intervals; "
        "0: no correction.",
    ),
)
"""How start times are foreseen."""

site_options: Decorator = together(
    click.option(
        "--tick",
        "tick_s",
        type=POSITIVE,
        default=10.0,
        metavar="SECONDS",
        help="Time between two ticks; in each, the policy decides on the queue.",
    ),
    click.option(
        "--ticks",
        "num_ticks",
        type=count(0),
        default=0,
        help="Number of ticks; with 0 the command runs until you stop it.",
    ),
    click.option(
        "--partition",
        "partitions",
        metavar="NAME",
        multiple=True,
        help="Only jobs and nodes of this partition; can be repeated. By default all.",
    ),
    click.option(
        "--longest-wait",
        "longest_wait_s",
        type=count(0),
        default=0,
        metavar="SECONDS",
        help="Guard: jobs that have waited longer go first, with room reserved for them; 0: no "
        "limit.",
    ),
    click.option(
        "--most-starts",
        type=count(0),
        default=50,
        help="Guard: the most jobs to start in one tick; 0: no limit.",
    ),
    click.option("--hash-users", is_flag=True, help="Record hashes of user names."),
    click.option(
        "--out",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File to append the lines to, compressed if its name ends in .gz; by default they are "
        "printed.",
    ),
    click.option(
        "--repeat",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Contact no Slurm: repeat the decisions on the states of this record, and compare "
        "them bit by bit.",
    ),
    click.option(
        "--simulate",
        "log",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="LOG",
        help="Contact no Slurm: simulate a site with the jobs of LOG and --processors processors.",
    ),
    click.option(
        "--speed",
        type=POSITIVE,
        default=60.0,
        help="With --simulate: simulated seconds in one second.",
    ),
)
"""What is looked at, how often, and where lines go."""
