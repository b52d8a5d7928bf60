"""The write-ahead file: every record is on disk before anybody tries to send it."""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]

SPOOL_FILE = "spool.jsonl"

# The kinds of records and what each of them holds. ``run`` is our own key of a run; the store's
# ids are not known when a record is written. Times are milliseconds since 1970.
FIELDS = {
    "open": {"uri", "time"},
    "start": {"run", "time", "experiment", "name", "tags", "parent"},
    "resume": {"run", "time"},
    "params": {"run", "params"},
    "tags": {"run", "tags"},
    "metrics": {"run", "time", "step", "metrics"},
    "artifact": {"run", "path", "folder"},
    "model": {"run", "path", "register"},
    "note": {"run", "title", "text"},
    "end": {"run", "time", "status", "experiment"},
}
MARKED = 4_096  # bytes; a record that is longer is a mark too, as far as they reach
KEPT_IN_MEMORY = 10_000  # lines that wait for a disk that is full or gone


def tracking_dir(run_dir: str | os.PathLike[str]) -> Path:
    """Folder of a run directory that holds the spool and how far it was delivered."""
    return Path(run_dir).absolute() / "tracking"


class Spool:
    """Append-only file of JSON lines, one record a line, shared by the threads of a process.

    A line is handed to the operating system in one write, so that it survives the end of the
    process at any moment; it is not forced to the disk, so a power failure may cost the last
    seconds. A line cut short by a crash is skipped when read.

    Args:
        directory: The folder ``tracking`` of a run directory; created with the first record.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / SPOOL_FILE
        self._lock = threading.Lock()
        self._unwritten: list[bytes] = []
        self._file: int | None = None

    def append(self, record: Record) -> None:
        """Writes one record, after those that an earlier error of the disk had left in memory.

        Raises:
            OSError: The disk refused; the record is kept in memory for the next call.
            OverflowError: The same, and memory holds so many that the oldest was dropped.
        """
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with self._lock:
            self._unwritten.append(line)
            try:
                self._write_all()
            except OSError:
                self._close_file()
                if len(self._unwritten) > KEPT_IN_MEMORY:
                    del self._unwritten[0]
                    raise OverflowError("the oldest unwritten record was dropped") from None
                raise

    def _write_all(self) -> None:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                os.write(self._file, b"\n")  # ends what a crash has cut short
        while self._unwritten:
            line = self._unwritten[0]
            if os.write(self._file, line) != len(line):
                raise OSError(f"only part of a record could be written to {self.path}")
            del self._unwritten[0]

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def close(self) -> int:
        """Closes the file; a later record opens it again.

        Returns:
            Number of records that the disk still refuses.
        """
        with self._lock:
            if self._unwritten:
                with contextlib.suppress(OSError):
                    self._write_all()
            self._close_file()
            return len(self._unwritten)

    def mark(self, offset: int) -> str:
        """Tells the bytes just before an offset from others; empty at the beginning."""
        if not offset:
            return ""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, offset - MARKED))
                found = file.read(min(offset, MARKED))
        except FileNotFoundError:
            found = b""
        return hashlib.sha256(found).hexdigest()[:16]

    def read(self, offset: int = 0) -> Iterator[tuple[Record | None, int]]:
        """Complete lines from a byte offset on.

        Yields:
            The record, or None for a line that is no record, and the offset behind the line.
        """
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # being written right now, or cut short: not yet a record
                offset += len(line)
                yield _parse(line), offset

    def of_kind(self, *kinds: str) -> list[Record]:
        """All records of some kinds, in order; cheap for the rare kinds of a long file."""
        marks = tuple(f'{{"kind":"{kind}"'.encode() for kind in kinds)
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            parsed = [_parse(line) for line in file if line.startswith(marks)]
        return [record for record in parsed if record is not None]

    def count(self, offset: int = 0) -> int:
        """Number of lines that hold something, from a byte offset on."""
        return sum(record is not None for record, _ in self.read(offset))


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
        return record if FIELDS[record["kind"]] <= record.keys() else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
