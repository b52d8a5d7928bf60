"""The names of `tune_jobs.tables` for modules that are not yet moved to it."""

from tune_jobs.tables.frames import (
    Cells,
    Row,
    Value,
    number,
    plain,
    read_table,
    write_table,
)
from tune_jobs.tables.printing import aligned, markdown

__all__ = [
    "Cells",
    "Row",
    "Value",
    "aligned",
    "markdown",
    "number",
    "plain",
    "read_table",
    "write_table",
]
