"""Frames of results: made from rows, and kept as CSV files that figures are drawn from.

Cells keep the type that they were measured in, and those of a file are text until somebody asks for
numbers: pandas would read True, empty cells and 1e-3 its own way.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from cluster_env.core.errors import InputError, printable
from cluster_env.evaluation import Estimate
from tune_jobs.terminal.files import replacing

Value = str | float | int | bool
Row = Mapping[str, Value]
Cells = dict[str, str]  # a row as it stands in a file

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_QUOTE = "'"


def frame_of(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Rows as a frame of objects, columns in the order in which rows have them first."""
    listed = list(rows)
    columns = list(dict.fromkeys(name for row in listed for name in row))
    return pd.DataFrame([dict(row) for row in listed], columns=columns, dtype=object)


def write_table(path: Path, rows: Iterable[Row] | pd.DataFrame) -> None:
    """Writes rows as CSV, atomically; NaN, and what a row lacks, becomes an empty cell.

    A text that a spreadsheet would take for a formula gets an apostrophe in front, as spreadsheets
    have it, and signs that a terminal obeys become question marks: names may be of strangers.

    Args:
        path: the file; its folder is created if need be.
        rows: at least one, or a frame, for tables of millions.
    """
    frame = (rows if isinstance(rows, pd.DataFrame) else frame_of(rows)).copy(deep=False)
    for name in frame.select_dtypes(["object", "string"]):
        # Of objects, because pandas would make floats of whole numbers beside empty cells.
        cells = list(map(_harmless, frame[name]))
        frame[name] = pd.Series(cells, index=frame.index, dtype=object)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        frame.to_csv(aside, index=False, lineterminator="\n")


def _harmless(cell: object) -> object:
    if not isinstance(cell, str) or (cell[:1] not in _FORMULAS and cell.isprintable()):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"{_QUOTE * (cell[:1] in _FORMULAS)}{printable(cell)}"
    return cell  # a number below 0


def read_frame(path: Path, texts: Iterable[str] = (), numbers: Iterable[str] = ()) -> pd.DataFrame:
    """Reads a CSV file.

    Args:
        path: the file.
        texts: columns that must be there.
        numbers: columns that must be there and hold numbers: float64, NaN where a cell is empty.
            Cells of all other columns are text, empty ones too.

    Raises:
        InputError: if the file cannot be read, is empty, lacks a column, or holds text in a column
            of numbers.
    """
    try:
        frame = pd.read_csv(path, dtype=object, keep_default_na=False, na_filter=False)
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} holds no rows") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise InputError(f"cannot read {path}: {str(error).strip()}") from None
    if frame.empty:
        raise InputError(f"{path} holds no rows")
    numbers = tuple(numbers)
    missing = [name for name in (*texts, *numbers) if name not in frame]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}, so nothing can be drawn from it")
    return with_numbers(frame.fillna(""), numbers)  # lines that are too short


def with_numbers(frame: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The frame with columns of text as float64, NaN where a cell is empty.

    Raises:
        InputError: if a cell holds no number.
    """
    frame = frame.copy()
    for name in columns:
        try:
            frame[name] = frame[name].map(lambda cell: float(cell or "nan")).astype(float)
        except ValueError as error:
            raise InputError(f"column '{name}' should hold numbers: {error}") from None
    return frame


def read_table(path: Path, columns: Iterable[str]) -> list[Cells]:
    """The rows of `read_frame`, one by one."""
    return [dict(row) for row in read_frame(path, columns).to_dict("records")]


def estimate_cells(name: str, estimate: Estimate) -> dict[str, Value]:
    """A mean and the ends of its interval, as cells of a row."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


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
