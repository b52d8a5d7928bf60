"""What a mean was bought with, in a few words, for figures that have little room."""

from collections.abc import Mapping
from typing import Any

from tune_jobs.comparing.table import column_of
from tune_jobs.terminal.tables import number

SHORT = ("utilization", "wait", "longest_wait")
"""What is said where there is room for three numbers only."""


def in_words(row: Mapping[str, Any]) -> str:
    """Says it: ``util 49%, wait 5.1, longest 21.3``; empty for a table without side metrics."""
    if not all(row.get(name) for name in SHORT):
        return ""
    shown = (column_of(name) for name in SHORT)
    return ", ".join(
        f"{title} {write(number(row, name))}"
        for name, (title, write) in zip(SHORT, shown, strict=True)
    )
