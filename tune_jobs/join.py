"""``metasched join``: tables of one kind as one, with a column that says which a row is of."""

from pathlib import Path

import click

from cluster_env.core.errors import InputError
from tune_jobs.terminal.options import CONTEXT, OutPath


@click.command(name="join", context_settings=CONTEXT)
@click.argument("tables", metavar="TABLE")
@click.option(
    "--by",
    metavar="NAME=VALUE,...",
    required=True,
    help="The new first column, and the values of it that there is a table for.",
)
@click.option(
    "--out",
    type=OutPath(dir_okay=False),
    required=True,
    help="CSV file for the rows of all tables.",
)
def command(tables: str, by: str, out: Path) -> None:
    """Join the CSV files of several commands into one.

    TABLE is the path of all of them, with NAME in braces where they differ. Values stay as they
    are, digit for digit.

    \b
    Examples:
      metasched join 'told-{share}/comparison.csv' --by share=0,0.5,off --out told.csv
    """
    join_tables(tables, by, out)


def join_tables(tables: str, by: str, out: Path) -> None:
    """Writes the rows of several CSV files into one, behind a column that tells them apart.

    Args:
        tables: path of each, with the name of that column in braces where they differ.
        by: ``NAME=VALUE,...``, the column and a value for each file.
        out: the file to write.

    Raises:
        InputError: if no column or value is named, one twice, or a file cannot be joined; nothing
            is written then.
    """
    name, _, listed = by.partition("=")
    values = [value.strip() for value in listed.split(",")]
    if not name.isidentifier() or not all(values):
        raise InputError(f"--by takes a column and its values, as share=0,0.5,off, not '{by}'")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise InputError(f"--by names the value '{twice}' twice")
    if f"{{{name}}}" not in tables:
        raise InputError(f"'{tables}' should have {{{name}}} where the tables' paths differ")
    import pandas as pd

    from tune_jobs.tables.frames import read_frame, write_table

    frames = []
    for value in values:
        path = Path(tables.replace(f"{{{name}}}", value))
        frame = read_frame(path)
        if name in frame:
            raise InputError(f"{path} has a column '{name}' already; give --by another name")
        frame.insert(0, name, value)
        frames.append(frame)
    joined = pd.concat(frames)
    write_table(out, joined)
    click.echo(f"Wrote {out}: {len(joined):,} rows of {len(values)} tables")


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
