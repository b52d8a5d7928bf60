"""Lengths of time as people read them."""

_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """``90 s``, ``2.5 h``, ``40 d``: in the largest unit of which there are at least two."""
    for length, unit in _UNITS:
        if abs(seconds) >= 2 * length or unit == "s":
            value = seconds / length
            return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
    raise AssertionError
