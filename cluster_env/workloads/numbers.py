"""Numbers as they stand in files."""

import math

import numpy as np
from numpy.typing import NDArray


def read_number(text: str) -> int | float | None:
    """The number that a text says: ``7``, ``2e1``, ``10.5``; None if it is none, or not finite.

    Whole numbers keep all their digits, as 64-bit ids need.
    """
    if "_" in text or not text.isascii():  # Python's own notation, and digits of other scripts
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def rounded_up(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole seconds, so that what lasts longer than nothing lasts at least one."""
    return np.ceil(seconds).astype(np.int64)


def as_shown(text: str) -> str:
    """A cell of a file as messages quote it: one line, no signs that a terminal obeys, not long."""
    line = "".join(sign if sign.isprintable() else " " for sign in text[:200])
    return " ".join(line.split())[:40]
