"""Files of jobs as readers open them: plain or compressed with gzip, and never a device."""

import codecs
import errno
import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from cluster_env.core.errors import InputError

GZIP = b"\x1f\x8b"
"""What compressed files begin with."""


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


@contextmanager
def opened(path: Path, what: str, *, newline: str = "", errors: str = "strict") -> Iterator[TextIO]:
    """The text of a file in UTF-8 or UTF-16, with or without a byte order mark.

    Raises:
        InputError: if it cannot be read, or ends in the middle of what was compressed.
    """
    # By what the file begins with, not by its name: exports are renamed and unpacked.
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == GZIP
        open_bytes = gzip.open if compressed else open
        with open_bytes(path, "rb") as file:
            encoding = encoding_of(file.read(2))
            file.seek(0)
            with TextIOWrapper(file, encoding, errors=errors, newline=newline) as text:
                yield text
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {what} {path}: {why}") from None
