"""Lists of hosts as Slurm writes them."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import prod

MOST_HOSTS = 100_000
_FEW = 1_000  # hosts of a list that is remembered

_NAME = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
_PIECE = re.compile(r"\[([^\]]*)\]|([^\[]+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def host_names(text: str) -> tuple[str, ...]:
    """Names in a list of Slurm's: ``gpu[01-03,7],login`` are five.

    Raises:
        ValueError: if it is none, or names more than `MOST_HOSTS`.
    """
    return _remembered(text) if num_hosts(text) <= _FEW else _names(text)


def num_hosts(text: str) -> int:
    """How many names a list has, without making them: a short text can name billions.

    Raises:
        ValueError: see `host_names`.
    """
    count = 0
    for pieces in _lists(text):
        count += prod(map(_num_choices, pieces))
        if count > MOST_HOSTS:
            raise ValueError(f"a list of hosts has more than {MOST_HOSTS:,} names")
    return count


def _names(text: str) -> tuple[str, ...]:
    # rack[1-2]node[01-40]: each piece has its choices, and every combination is a host.
    names: list[str] = []
    for pieces in _lists(text):
        names += map("".join, product(*map(_choices, pieces)))
    return tuple(names)


_remembered = lru_cache(maxsize=1 << 16)(_names)

Piece = str | list[tuple[int, int, int]]
"""A text, or ranges: first and last number, and how many digits they have at least."""


def _lists(text: str) -> Iterator[list[Piece]]:
    """The pieces of each part between commas."""
    place = 0
    while place < len(text):
        name = _NAME.match(text, place)
        if not name or not name[0] or text[name.end() : name.end() + 1] not in ("", ","):
            raise ValueError("a list of hosts has names, separated by commas")
        yield [plain or _ranges(ranges) for ranges, plain in _PIECE.findall(name[0])]
        place = name.end() + 1


def _ranges(text: str) -> list[tuple[int, int, int]]:
    ranges = []
    for part in text.split(","):
        numbers = _RANGE.fullmatch(part)
        if not numbers or int(numbers[2] or numbers[1]) < int(numbers[1]):
            raise ValueError("a range of hosts is no range")
        # Numbers are as long as the first is written: 008 to 010.
        ranges.append((int(numbers[1]), int(numbers[2] or numbers[1]), len(numbers[1])))
    return ranges


def _num_choices(piece: Piece) -> int:
    return 1 if isinstance(piece, str) else sum(last - first + 1 for first, last, _ in piece)


def _choices(piece: Piece) -> list[str]:
    if isinstance(piece, str):
        return [piece]
    return [str(k).zfill(digits) for first, last, digits in piece for k in range(first, last + 1)]
