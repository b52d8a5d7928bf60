"""Tables of figures as data frames."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from cluster_env.core.errors import InputError
from cluster_env.evaluation import Estimate
from tune_jobs.tables import frames
from tune_jobs.tables.frames import Value


def read_frame(table: Path, texts: Iterable[str] = (), numbers: Iterable[str] = ()) -> pd.DataFrame:
    """Reads the CSV file of a figure, a column for each of the file's.

    Args:
        table: the file.
        texts: columns that must be there.
        numbers: columns that must be there and hold numbers: float64, NaN where a cell is empty.
            All other columns are text.

    Raises:
        InputError: if the file cannot be read, is empty, lacks a column, or holds text in a column
            of numbers.
    """
    numbers = tuple(numbers)
    return with_numbers(frames.read_frame(table, (*texts, *numbers)), numbers)


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


def estimate_cells(name: str, estimate: Estimate) -> dict[str, Value]:
    """A mean and the ends of its interval, as cells of a row."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
