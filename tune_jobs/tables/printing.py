"""Tables for people: aligned for a terminal, as Markdown, and sheets of one or the other."""

import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster_env.core.durations import duration
from cluster_env.core.errors import printable
from tune_jobs.tables.columns import Column, column
from tune_jobs.tables.frames import plain

WIDTH = 80
"""Columns of a terminal that text fits into."""

_SHORTEST_NAME = 12


def aligned(lines: Sequence[Sequence[str]], *, names: int, width: int = 0) -> list[str]:
    """Lines of cells as text in columns, without any color.

    Args:
        lines: cells, as many in each line.
        names: how many columns, the first ones, hold names and stand to the left; numbers stand to
            the right.
        width: characters of a line, if it is to have no more where that can be done by breaking
            the last column of names.
    """
    lines = [list(map(printable, cells)) for cells in lines]
    needed = width_of(lines)
    if width:
        longest = max(cell_len(cells[names - 1]) for cells in lines)
        needed = max(width, needed - max(longest - _SHORTEST_NAME, 0))
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for place in range(len(lines[0])):
        name = place == names - 1
        grid.add_column(justify="left" if place < names else "right", no_wrap=not name)
    for cells in lines:
        grid.add_row(*(Text(cell.expandtabs(1), overflow="fold") for cell in cells))
    text = io.StringIO()
    Console(file=text, width=needed, color_system=None, force_jupyter=False).print(grid)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def width_of(lines: Sequence[Sequence[str]]) -> int:
    """Columns of a terminal that lines of cells need."""
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, a name first, as a table in Markdown; the first line is a head."""
    head, *rows = [[printable(cell).replace("|", r"\|") for cell in line] for line in lines]
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def code_span(name: str) -> str:
    """A name as code in Markdown, whatever it holds: it may be a stranger's."""
    return f"`{name.replace('`', chr(39))}`"


def as_markdown(text: str) -> str:
    """A text with names in it, of which nothing becomes an image, a link, code or HTML."""
    return re.sub(r"[*`<]", r"\\\g<0>", text).replace("](", r"]\(")


def title_case(text: str) -> str:
    """The text with its first letter large, as heads and sentences begin."""
    return f"{text[:1].upper()}{text[1:]}"


def folded(sentences: Iterable[str], width: int = WIDTH) -> list[str]:
    """Sentences in lines that fit a terminal, broken between words."""
    return [
        line
        for one in sentences
        for line in textwrap.wrap(one, width, subsequent_indent="  ", break_on_hyphens=False)
    ]


@dataclass(frozen=True)
class Sheet:
    """A table about a job log, whose times are seconds."""

    name: str  # of its file, without ending
    title: str
    shown: Sequence[str]  # columns that people see, in order; files hold all
    rows: Sequence[Mapping[str, Any]]  # a missing value is empty, a NaN unknown
    note: str = ""  # a sentence that belongs under it
    own: Mapping[str, Column] = field(default_factory=dict)  # others than in `COLUMNS`
    most: int = 0  # rows that people see, from the top; 0 is all

    def cells(self) -> list[list[str]]:
        """What people read: the head, then the rows."""
        columns = {name: self.own.get(name) or column(name) for name in self.shown}
        return [
            [one.head for one in columns.values()],
            *(
                [one.write(row.get(name, ""), duration) for name, one in columns.items()]
                for row in self.rows
            ),
        ]


def format_sheet(sheet: Sheet) -> str:
    """The sheet as text with its title; of too many rows, those at the top."""
    cells = sheet.cells()
    texts = [isinstance(sheet.rows[0].get(name), str) for name in sheet.shown] if sheet.rows else []
    left_out = max(len(cells) - 1 - sheet.most, 0) if sheet.most else 0
    lines = aligned(cells[: len(cells) - left_out], names=max([*texts, False].index(False), 1))
    notes = [f"and {left_out:,} more in {sheet.name}.csv with --out"] if left_out else []
    notes += [sheet.note] if sheet.note else []
    under = textwrap.wrap(f"({'; '.join(notes)})", WIDTH - 3) if notes else []
    under = [f"  {' ' * (place > 0)}{line}" for place, line in enumerate(under)]
    return "\n".join([click.style(sheet.title, bold=True), *lines, *under])


def as_data(sheets: Iterable[Sheet]) -> dict[str, list[dict[str, object]]]:
    """The rows of sheets by name, for JSON."""
    return {sheet.name: plain(sheet.rows) for sheet in sheets}
