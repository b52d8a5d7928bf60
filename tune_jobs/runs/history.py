"""The metrics of a run, one row an iteration, as a CSV that can be read while it grows."""

import csv
import io
import logging
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.terminal.files import append_whole, write_whole

logger = logging.getLogger(__name__)

METRICS = "metrics.csv"
KEY = "iteration"
MetricRow = dict[str, float]


class History:
    """The file ``metrics.csv``: a column ``iteration``, and one for each metric.

    A metric that first comes up later gets a new column, empty in the rows before; the file is
    then replaced as a whole. Whoever appends keeps all lines in memory, a kilobyte for each: a file
    that is lost or changed by others is made again from them, and what a full disk refuses is
    written later.

    Args:
        path: the file; created with the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._lines: list[str] | None = None  # without the header; None before the first change
        self._num_written = 0  # of these lines
        self._written: tuple[int, int] | None = None  # what the file was after the last write

    def append(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Adds the row of an iteration.

        Raises:
            OSError: if the disk is full or gone. The table is what it was; the row is written with
                the next one, or by `flush`.
        """
        if self._lines is None:
            self._take(self.rows())
        assert self._lines is not None
        row = {KEY: float(iteration), **metrics}
        if new := [name for name in row if name not in self._columns]:
            self._columns += new
            self._lines = [f"{line[:-1]}{',' * len(new)}\n" for line in self._lines]
            if self._is_intact():
                self._written = None  # to be replaced
        self._lines.append(_csv_line(_text(row.get(name)) for name in self._columns))
        self.flush()

    def flush(self) -> None:
        """Writes the rows that the disk does not have.

        Raises:
            OSError: if it does not take them.
        """
        if self._lines is None:
            return
        if self._written is not None and self._is_intact():
            append_whole(self.path, "".join(self._lines[self._num_written :]))
        else:
            if self._written is not None:
                logger.warning(
                    "%s was lost or changed by others; it is made again with the rows from "
                    "iteration %s on",
                    self.path,
                    self._lines[0].partition(",")[0].strip(),
                )
            write_whole(self.path, self._all())
        self._num_written, self._written = len(self._lines), _identity(self.path)

    def rows(self) -> list[MetricRow]:
        """All complete rows in order; a metric without a value in a row is absent from it.

        A line that a crash has cut short is left out.

        Raises:
            InputError: if the file is no such table.
        """
        if not self.path.exists():
            return []
        try:
            return _parsed(self.path.read_text())
        except (OSError, ValueError, csv.Error) as error:
            raise InputError(f"{self.path} is no table of metrics: {error}") from None

    def by_iteration(self) -> list[tuple[int, MetricRow]]:
        """The rows as iterations and their metrics; see `rows`."""
        return [(int(row.pop(KEY)), row) for row in self.rows()]

    def copy_to(self, path: Path) -> None:
        """Copies the table, as far as there is one."""
        if self._lines is not None:
            if not self._is_intact():
                self.flush()
            path.write_text(self._all())
        elif self.path.exists():
            shutil.copyfile(self.path, path)

    def go_back(self, iteration: int, copy: Path | None = None) -> None:
        """Removes the rows of later iterations, and what a crash has cut short.

        Args:
            iteration: the last one that stays.
            copy: what `copy_to` wrote after that iteration, if it did; it takes the place of a
                table that is lost or damaged.
        """
        before = self._rows_until(iteration)
        copied = None if copy is None else History(copy)._rows_until(iteration)
        rows = before or []
        if len(copied or []) > len(rows):
            logger.warning("%s was lost or damaged; it is made again from %s", self.path, copy)
            rows = copied or []
        elif iteration and not rows:
            logger.warning("the rows of %s until iteration %d are lost", self.path, iteration)
        if before is None and not rows:
            self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
        self._take(rows)
        if rows:
            self.flush()
        else:
            self.path.unlink(missing_ok=True)

    def _rows_until(self, iteration: int) -> list[MetricRow] | None:
        """Rows up to an iteration, None if the file cannot be read."""
        try:
            rows = self.rows() if self._lines is None else _parsed(self._all())
        except InputError:
            return None
        return [row for row in rows if row[KEY] <= iteration]

    def _take(self, rows: list[MetricRow]) -> None:
        """Has rows take the place of all lines; the file is to be replaced."""
        self._columns = list(dict.fromkeys(name for row in rows for name in row))
        self._lines = [_csv_line(_text(row.get(name)) for name in self._columns) for row in rows]
        self._num_written, self._written = 0, None

    def _all(self) -> str:
        return _csv_line(self._columns) + "".join(self._lines or [])

    def _is_intact(self) -> bool:
        return self._written == _identity(self.path)


def _parsed(text: str) -> list[MetricRow]:
    lines = text.splitlines(keepends=True)
    header, *complete = [line for line in lines if line.endswith("\n")] or [""]
    names = next(csv.reader([header]), [])
    if KEY not in names:
        raise ValueError(f"it has no column '{KEY}'")
    parsed = (values for values in csv.reader(complete) if len(values) == len(names))
    return [
        {name: float(value) for name, value in zip(names, values, strict=True) if value}
        for values in parsed
    ]


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from one that took its place, or that somebody else wrote to."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size


def _text(value: float | None) -> str:
    if value is None:
        return ""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _csv_line(values: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()
