"""``metasched join``: tables of one kind as one, with a column that says which a row is of."""

from pathlib import Path

import click

from tune_jobs.terminal.options import CONTEXT, OutPath, force_option


@click.command(name="join", context_settings=CONTEXT)
@click.argument("tables", metavar="TABLE")
@click.option(
    "--by",
    metavar="NAME=VALUE,...",
    required=True,
    help="Name of the new first column, and its value for each table.",
)
@click.option(
    "--out",
    type=OutPath(dir_okay=False),
    required=True,
    help="CSV file for the rows of all tables.",
)
@force_option
def command(tables: str, by: str, out: Path) -> None:
    """Join the CSV files of several commands into one.

    TABLE is their common path, with NAME in braces where the paths differ. Values keep all their
    digits.

    \b
    Examples:
      metasched join 'told-{share}/comparison.csv' --by share=0,0.5,off --out told.csv
    """
    from tune_jobs.tables.joining import join_tables

    join_tables(tables, by, out).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
