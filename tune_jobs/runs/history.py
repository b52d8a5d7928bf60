"""The metrics of a run, one row an iteration, as a CSV that can be read while it grows."""

import csv
import io
import logging
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.terminal.files import append_whole, replacing

logger = logging.getLogger(__name__)

METRICS = "metrics.csv"
KEY = "iteration"
MetricRow = dict[str, float]
_UNREADABLE = (InputError, ValueError, csv.Error)


class History:
    """The file ``metrics.csv``: a column ``iteration``, and one for each metric.

    A metric that first comes up later gets a new column, empty in the rows before; the file is
    then replaced as a whole. A file that is lost or changed by others while this writes to it is
    made again, from the copy in the newest checkpoint and the rows since then, which stay in
    memory.

    Args:
        path: the file; created with the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._written: tuple[int, int] | None = None  # what the file was after the last write
        self._copy: Path | None = None
        self._since: list[MetricRow] = []  # rows that the copy does not hold

    def append(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Adds the row of an iteration, in one write.

        Raises:
            OSError: if the disk is full or gone; the table is what it was.
        """
        row = {KEY: float(iteration), **metrics}
        if self._written is None:
            self._since = self.rows()
            self._rewrite([*self._since, row])
        elif self._is_intact() and row.keys() <= set(self._columns):
            append_whole(self.path, _line(row, self._columns))
            self._written = _identity(self.path)
        else:
            self._rewrite([*self._own_rows(), row])
        self._since.append(row)

    def rows(self) -> list[MetricRow]:
        """All complete rows in order; a metric without a value in a row is absent from it.

        A line that a crash has cut short is left out.

        Raises:
            InputError: if the file is no such table.
        """
        if not self.path.exists():
            return []
        try:
            return self._parsed(self.path.read_text())
        except (OSError, ValueError, csv.Error) as error:
            raise InputError(f"{self.path} is no table of metrics: {error}") from None

    def by_iteration(self) -> list[tuple[int, MetricRow]]:
        """The rows as iterations and their metrics; see `rows`."""
        return [(int(row.pop(KEY)), row) for row in self.rows()]

    def _parsed(self, text: str) -> list[MetricRow]:
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

    def copy_to(self, path: Path) -> None:
        """Copies the table, as far as there is one; see `trust`."""
        if self._written is not None and not self._is_intact():
            self._rewrite(self._own_rows())
        if self.path.exists():
            shutil.copyfile(self.path, path)

    def trust(self, copy: Path) -> None:
        """Takes lost rows from a copy from now on, so that they need not stay in memory."""
        if copy.exists():
            self._copy, self._since = copy, []

    def go_back(self, iteration: int, copy: Path | None = None) -> None:
        """Removes the rows of later iterations, and what a crash has cut short.

        Args:
            iteration: the last one that stays.
            copy: what `copy_to` wrote after that iteration, if it did; it takes the place of a
                table that is lost or damaged.
        """
        rows = self._rows_until(iteration)
        if self._written is not None:
            rows = [row for row in self._own_rows() if row[KEY] <= iteration]
        copied = None if copy is None else History(copy)._rows_until(iteration)
        if len(copied or []) > len(rows or []):
            logger.warning("%s was lost or damaged; it is made again from %s", self.path, copy)
            rows = copied
        elif iteration and not rows:
            logger.warning("the rows of %s until iteration %d are lost", self.path, iteration)
        if rows:
            self._rewrite(rows)
        else:
            if rows is None:
                self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
            self.path.unlink(missing_ok=True)
            self._written = None
        self._copy, self._since = None, rows or []

    def _rows_until(self, iteration: int) -> list[MetricRow] | None:
        """Rows up to an iteration, None if the file cannot be read."""
        try:
            return [row for row in self.rows() if row[KEY] <= iteration]
        except _UNREADABLE:
            return None

    def _is_intact(self) -> bool:
        return self._written == _identity(self.path)

    def _own_rows(self) -> list[MetricRow]:
        """What this has written, wherever it still is."""
        if self._is_intact():
            try:
                return self.rows()
            except _UNREADABLE:
                pass
        copied = None if self._copy is None else History(self._copy)._rows_until(2**53)
        rows = [*(copied or []), *self._since]
        what = f"the rows from iteration {rows[0][KEY]:.0f} on" if rows else "no row"
        logger.warning(
            "%s was lost or changed by others; it is made again with %s", self.path, what
        )
        return rows

    def _rewrite(self, rows: Sequence[MetricRow]) -> None:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with replacing(self.path) as aside:
            lines = (_line(row, columns) for row in rows)
            aside.write_text(_csv_line(columns) + "".join(lines))
        self._columns = columns
        self._written = _identity(self.path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from one that took its place, or that somebody else wrote to."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size


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
