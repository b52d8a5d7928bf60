"""The metrics of a run, one row an iteration, as a CSV that can be read while it grows."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.terminal.files import append_whole, replacing

KEY = "iteration"
MetricRow = dict[str, float]


class History:
    """The file ``metrics.csv``: a column ``iteration``, and one for each metric.

    A metric that first comes up later gets a new column, empty in the rows before; the file is
    then replaced as a whole.

    Args:
        path: the file; created with the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = self._read_columns()

    def _read_columns(self) -> list[str]:
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return next(csv.reader(file), [])

    def append(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Adds the row of an iteration, in one write.

        Raises:
            OSError: if the disk is full or gone; the table is what it was.
        """
        row = {KEY: float(iteration), **metrics}
        new = [name for name in row if name not in self._columns]
        if new:
            rows = self.rows() if self._columns else []
            self._rewrite([*rows, row], [*self._columns, *new])
            return
        append_whole(self.path, _line(row, self._columns))

    def rows(self) -> list[MetricRow]:
        """All complete rows in order; a metric without a value in a row is absent from it.

        A line that a crash has cut short is left out.
        """
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines(keepends=True)
        header, *complete = [line for line in lines if line.endswith("\n")] or [""]
        names = next(csv.reader([header]), [])
        if KEY not in names:
            raise InputError(f"{self.path} is no table of metrics: it has no column '{KEY}'")
        parsed = (values for values in csv.reader(complete) if len(values) == len(names))
        return [
            {name: float(value) for name, value in zip(names, values, strict=True) if value}
            for values in parsed
        ]

    def cut_after(self, iteration: int) -> None:
        """Removes the rows of later iterations, and what a crash has cut short."""
        if not self.path.exists():
            return
        rows = [row for row in self.rows() if row[KEY] <= iteration]
        self._rewrite(rows, self._read_columns())

    def _rewrite(self, rows: Iterable[MetricRow], columns: list[str]) -> None:
        with replacing(self.path) as aside:
            lines = (_line(row, columns) for row in rows)
            aside.write_text(_csv_line(columns) + "".join(lines))
        self._columns = columns


def _line(row: Mapping[str, float], columns: Iterable[str]) -> str:
    return _csv_line(_text(row.get(name)) for name in columns)


def _text(value: float | None) -> str:
    if value is None:
        return ""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _csv_line(values: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()
