"""Tables of results: rows of named values, kept as CSV files that figures are drawn from."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.terminal.files import replacing

Value = str | float | int | bool
Row = Mapping[str, Value]
Cells = dict[str, str]  # a row as it stands in a file


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows as CSV, atomically; NaN becomes an empty cell.

    Args:
        path: the file; its folder is created if need be.
        rows: at least one; columns that a row lacks stay empty in it.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside, aside.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(row.get(name, "")) for name in columns] for row in rows)


def write_columns(path: Path, columns: Mapping[str, Iterable[Value]]) -> None:
    """Writes columns of equal length as CSV, atomically; for tables of millions of rows.

    Args:
        path: the file; its folder is created if need be.
        columns: whole numbers and texts, by name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside, aside.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def read_table(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """Reads a CSV file.

    Args:
        path: the file.
        columns: names that must be there.

    Raises:
        InputError: if the file cannot be read, is empty, or lacks a column.
    """
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not rows:
        raise InputError(f"{path} holds no rows")
    missing = [name for name in columns if name not in rows[0]]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}, so nothing can be drawn from it")
    return rows


def aligned(lines: Sequence[Sequence[str]], *, names: int) -> list[str]:
    """Lines of cells as text in columns: the first `names` to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def markdown(lines: Sequence[Sequence[str]], *, names: int) -> str:
    """Lines of cells, the first a head, as a table in Markdown; `names` as for `aligned`."""
    head, *rows = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    rule = [":--" if place < names else "--:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def number(row: Mapping[str, str], name: str) -> float:
    """The number in a cell; NaN if it is empty or not there."""
    text = row.get(name) or "nan"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"column '{name}' should hold numbers, but holds '{text}'") from None


def plain(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Rows for JSON, which has no NaN."""
    return [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _text(value: Value) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)
