"""Tables of comparisons that differ in a setting, as one."""

from pathlib import Path

import click

from cluster_env.core.errors import InputError
from tune_jobs.terminal.tables import Cells, read_table, write_table


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
    rows: list[Cells] = []
    for value in values:
        path = Path(tables.replace(f"{{{name}}}", value))
        found = read_table(path, ())
        if name in found[0]:
            raise InputError(f"{path} has a column '{name}' already; give --by another name")
        rows += [{name: value, **row} for row in found]
    write_table(out, rows)
    click.echo(f"Wrote {out}: {len(rows):,} rows of {len(values)} tables")
