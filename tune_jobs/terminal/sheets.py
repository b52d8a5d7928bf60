"""Sheets as people see them on a terminal, and as files."""

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from cluster_env.core.sheets import TEXT, Sheet
from tune_jobs.terminal.tables import aligned, plain, write_table

WIDTH = 80


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
