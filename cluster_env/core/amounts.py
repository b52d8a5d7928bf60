"""Numbers as people change them: ``512``, ``+64``, ``-64``, ``+10%``."""

import re

from cluster_env.core.errors import InputError, shortened

_AMOUNT = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(%?)")


def amount(key: str, text: str, now: float) -> float:
    """What a text makes of a number.

    Args:
        key: what the number is of.
        text: the new number, or a change by a number or by a share of it.
        now: the number today.

    Raises:
        InputError: if the text is none of these, or nothing remains.
    """
    parts = _AMOUNT.fullmatch(text)
    if parts is None or (parts[3] and not parts[1]):
        raise InputError(
            f"{key} is a number, or is changed by +64, -64 or +10%, not '{shortened(text)}'"
        )
    number = float(parts[2]) * (now / 100 if parts[3] else 1)
    found = {"": number, "+": now + number, "-": now - number}[parts[1]]
    if found <= 0:
        raise InputError(f"{key}={shortened(text)} leaves nothing of {now:,.6g}")
    return found


def whole_amount(key: str, text: str, now: int) -> int:
    """A whole number of 1 or more, likewise.

    Raises:
        InputError: if the text is none, or nothing remains.
    """
    found = round(amount(key, text, now))
    if found < 1:
        raise InputError(f"{key}={shortened(text)} leaves nothing of {now:,}")
    return found
