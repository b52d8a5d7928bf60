"""JSON that may be a stranger's: bounded in bytes and in depth."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 26
"""Of a file; those that metasched writes have far fewer."""


def parse_json(text: str | bytes) -> Any:
    """What a text holds.

    Raises:
        ValueError: if it is no JSON, or lists in it are nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None


def read_json(path: Path) -> Any:
    """What a file holds, one that ends in ``.gz`` compressed.

    Raises:
        OSError: if it cannot be read.
        ValueError: as `parse_json`, or if it has more than `MOST_BYTES`.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error):
        raise ValueError("its compressed data are broken") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return parse_json(data)
