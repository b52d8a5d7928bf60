"""Tables of one kind as one, for `metasched.join` and for calls of experiments."""

from functools import partial
from pathlib import Path

import pandas as pd

from cluster_env.core.errors import InputError
from tune_jobs.commands.comparing import Join
from tune_jobs.tables.frames import read_frame, write_table
from tune_jobs.tables.report import Report


def join_tables(options: Join) -> Report:
    """Writes the rows of several CSV files into one, behind a column that tells them apart.

    Raises:
        InputError: if no column or value is named, one twice, or a file cannot be joined; nothing
            is written then.
    """
    tables, by, out = options.tables, options.by, Path(options.out)
    name, _, listed = by.partition("=")
    values = [value.strip() for value in listed.split(",")]
    if not name.isidentifier() or not all(values):
        raise InputError(f"'by' takes a column and its values, as share=0,0.5,off, not '{by}'")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise InputError(f"'by' names the value '{twice}' twice")
    if f"{{{name}}}" not in tables:
        raise InputError(f"'{tables}' should have {{{name}}} where the tables' paths differ")
    frames = []
    for value in values:
        path = Path(tables.replace(f"{{{name}}}", value))
        frame = read_frame(path)
        if name in frame:
            raise InputError(f"{path} has a column '{name}' already; give another name")
        frame.insert(0, name, value)
        frames.append(frame)
    joined = pd.concat(frames)
    write_table(out, joined)
    return Report(
        text=f"Wrote {out}: {len(joined):,} rows of {len(values)} tables",
        tables={"rows": partial(pd.read_csv, out)},
    )
