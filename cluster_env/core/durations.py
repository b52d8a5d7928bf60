"""Lengths of time as people read and write them."""

import re

from cluster_env.core.errors import InputError, shortened

_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_LETTERS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration(seconds: float) -> str:
    """``90 s``, ``2.5 h``, ``40 d``: in the largest unit of which there are at least two."""
    for length, unit in _UNITS:
        if abs(seconds) >= 2 * length or unit == "s":
            value = seconds / length
            return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
    raise AssertionError


def seconds_of(text: str) -> int:
    """Seconds of ``90s``, ``30m``, ``1.5h`` or ``5d``; ``0`` needs no unit.

    Raises:
        InputError: if the text is no such time.
    """
    if text == "0":
        return 0
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if parts is None:
        raise InputError(
            f"a time is 0 or a number with s, m, h or d, such as 12h or 5d, not '{shortened(text)}'"
        )
    return round(float(parts[1]) * _LETTERS[parts[2]])
