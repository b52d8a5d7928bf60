"""Files of jobs as readers open them: plain or compressed with gzip, and never a device."""

import codecs
import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from cluster_env.core.errors import InputError

GZIP = b"\x1f\x8b"
"""What compressed files begin with."""

MOST_UNPACKED, MOST_RATIO, MOST_UNPACKED_LINES = 1 << 26, 40, 20_000_000
"""Bytes that a compressed file may hold, or so many times its size, and lines in it."""


def version_of(path: Path, what: str) -> tuple[int, int]:
    """Time of the last change (ns) and size of a file: what it is remembered by.

    Raises:
        InputError: if there is none, or it is a pipe or a device, which would never end. It calls
            the file by ``what``: ``the log``.
    """
    try:
        now = path.stat()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {what} {path}: {why}") from None
    if not stat.S_ISREG(now.st_mode):
        why = os.strerror(errno.EISDIR) if stat.S_ISDIR(now.st_mode) else "it is no file"
        raise InputError(f"cannot read {what} {path}: {why}")
    return now.st_mtime_ns, now.st_size


def encoding_of(begin: bytes) -> str:
    """UTF-16 where a file begins with its mark, as spreadsheets write it; else UTF-8."""
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "utf-16" if begin.startswith(marks) else "utf-8-sig"


class _Unpacked(io.RawIOBase):
    """What a compressed file holds, as long as that is in proportion to it.

    A file of a stranger may unpack to a thousand times its size. Job logs are 3 to 11 times as
    large as their files with gzip.
    """

    def __init__(self, path: Path) -> None:
        self._file = gzip.open(path, "rb")  # noqa: SIM115 - closed with this
        self._left = max(MOST_UNPACKED, MOST_RATIO * path.stat().st_size)
        self._limit, self._lines = self._left, MOST_UNPACKED_LINES

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpacks some bytes."""
        data = self._file.read1(len(buffer))  # what stands before a cut is not lost
        buffer[: len(data)] = data
        self._left -= len(data)
        self._lines -= data.count(b"\n")
        if self._left < 0:
            raise OSError(f"it unpacks to more than {self._limit:,} bytes; unpack it first")
        if self._lines < 0:
            raise OSError(f"it unpacks to more than {MOST_UNPACKED_LINES:,} lines")
        return len(data)

    def close(self) -> None:
        """Closes the file, too."""
        self._file.close()
        super().close()


def open_bytes(path: Path) -> io.BufferedReader:
    """The bytes of a file, unpacked if it is compressed, within bounds.

    By what it begins with, not by its name: exports are renamed and unpacked. Reading raises
    `OSError`, `EOFError` or `zlib.error` where it is cut off or beyond the bounds.
    """
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
    return io.BufferedReader(_Unpacked(path), 1 << 18) if compressed else path.open("rb")


@contextmanager
def opened(path: Path, what: str, *, newline: str = "", errors: str = "strict") -> Iterator[TextIO]:
    """The text of a file in UTF-8 or UTF-16, with or without a byte order mark.

    Raises:
        InputError: if it cannot be read, ends in the middle of what was compressed, or unpacks to
            too much.
    """
    try:
        with open_bytes(path) as file:
            encoding = encoding_of(file.peek(2)[:2])
            with TextIOWrapper(file, encoding, errors=errors, newline=newline) as text:
                yield text
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {what} {path}: {why}") from None
