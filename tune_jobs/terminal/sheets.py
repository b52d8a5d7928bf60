"""Sheets, tables of named numbers with their units: on a terminal, as files, for programs."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from cluster_env.core.durations import duration
from tune_jobs.terminal.tables import aligned, plain, write_table

WIDTH = 80

SECONDS, SHARE, COUNT, RATIO, TEXT = "s", "share", "count", "ratio", "text"
"""Units of columns. A share of 0.7 is shown as 70 %, seconds in the unit that suits them."""


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        name: of its file, without ending.
        title: what it shows.
        units: of the columns by their names, in order.
        rows: values by the columns' names; a missing one is empty, a NaN unknown.
        note: a sentence that belongs under it.
        titles: of columns that are not called by their names.
    """

    name: str
    title: str
    units: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> list[list[str]]:
        """What people read: the head, then the rows."""
        head = [self.titles.get(name, name).replace("_", " ") for name in self.units]
        return [
            head,
            *(
                [shown(row.get(name, ""), unit) for name, unit in self.units.items()]
                for row in self.rows
            ),
        ]


def shown(value: Any, unit: str) -> str:
    """A value as people read it: ``70%``, ``1.5 h``, ``12,345``; ``-`` if it is unknown."""
    if isinstance(value, str) or unit == TEXT:
        return str(value)
    number = float(value)
    if math.isnan(number):
        return "-"
    if unit == SECONDS:
        return duration(number)
    if unit == SHARE:
        return f"{number:.1%}" if 0 < abs(number) < 0.0995 else f"{number:.0%}"
    if unit == COUNT:
        return f"{number:,.0f}"
    return f"{number:,.2f}" if abs(number) < 1000 else f"{number:,.0f}"


def format_sheet(sheet: Sheet, most: int | None = None) -> str:
    """The sheet as text with its title; of too many rows, those at the top."""
    cells = sheet.cells()
    names = list(sheet.units.values())
    left = next((k for k, unit in enumerate(names) if unit != TEXT), len(names))
    left_out = max(len(cells) - 1 - most, 0) if most else 0
    lines = aligned(cells[: len(cells) - left_out], names=max(left, 1))
    notes = [sheet.note] if sheet.note else []
    if left_out:
        notes.insert(0, f"and {left_out:,} more in {sheet.name}.csv with --out")
    under = [f"  ({line}" for line in textwrap.wrap(f"{'; '.join(notes)})", WIDTH - 3)]
    under[1:] = [line.replace("(", " ", 1) for line in under[1:]]
    return "\n".join([click.style(sheet.title, bold=True), *lines, *(under if notes else [])])


def write_sheets(folder: Path, sheets: Iterable[Sheet]) -> list[Path]:
    """Writes each sheet with rows as a CSV file; returns the files."""
    paths = []
    for sheet in sheets:
        if sheet.rows:
            paths.append(folder / f"{sheet.name}.csv")
            write_table(paths[-1], sheet.rows)
    return paths


def as_data(sheets: Iterable[Sheet]) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of sheets by name, for JSON."""
    return {sheet.name: list(plain(sheet.rows)) for sheet in sheets}
