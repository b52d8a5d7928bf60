"""Errors that are meant to be read by a user."""

import re

MAX_SHOWN = 80


def shortened(text: str, most: int = MAX_SHOWN) -> str:
    """A text as messages quote it: what is too long loses its middle, and no half of a word."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    first = re.sub(r"(?<=\s)\S{0,40}$", "", text[:half])
    last = re.sub(r"^\S{0,40}(?=\s)", "", text[len(text) - half :])
    return f"{first}…{last}"


def printable(text: str) -> str:
    """A text of somebody else's without signs that a terminal obeys, such as colors; lines stay."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "?" for sign in text)


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one sentence that says what was expected, what came, and what to do. Commands
    print it without a traceback and end with exit status 2.
    """


class Failure(RuntimeError):
    """Something has failed that is not the user's input: a process, a disk, a number.

    The message is one sentence that says what has failed and what to do. Commands print it without
    a traceback and end with exit status 1.
    """
