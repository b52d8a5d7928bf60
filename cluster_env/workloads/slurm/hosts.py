"""Lists of hosts as Slurm writes them."""

import re
from functools import lru_cache
from itertools import product

MOST_HOSTS = 100_000

_NAME = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
_PIECE = re.compile(r"\[([^\]]*)\]|([^\[]+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@lru_cache(maxsize=1 << 16)
def host_names(text: str) -> tuple[str, ...]:
    """Names in a list of Slurm's: ``gpu[01-03,7],login`` are five.

    Raises:
        ValueError: if it is none, or names more than `MOST_HOSTS`.
    """
    names: list[str] = []
    place = 0
    while place < len(text):
        name = _NAME.match(text, place)
        if not name or not name[0] or text[name.end() : name.end() + 1] not in ("", ","):
            raise ValueError("a list of hosts has names, separated by commas")
        # rack[1-2]node[01-40]: each piece has its choices, and every combination is a host.
        pieces = [_choices(*piece) for piece in _PIECE.findall(name[0])]
        # Counted before they are made: a short text can name billions.
        count = len(names)
        for piece in pieces:
            count = max(count, 1) * len(piece)
        if count > MOST_HOSTS:
            raise ValueError(f"a list of hosts has more than {MOST_HOSTS} names")
        names += ("".join(parts) for parts in product(*pieces))
        place = name.end() + 1
    return tuple(names)


def _choices(ranges: str, plain: str) -> list[str]:
    if plain:
        return [plain]
    choices = []
    for part in ranges.split(","):
        numbers = _RANGE.fullmatch(part)
        if not numbers:
            raise ValueError("a range of hosts is no range")
        first, last = numbers[1], numbers[2] or numbers[1]
        if int(last) - int(first) > MOST_HOSTS:
            raise ValueError(f"a list of hosts has more than {MOST_HOSTS} names")
        # Numbers are as long as the first is written: 008 to 010.
        choices += [str(k).zfill(len(first)) for k in range(int(first), int(last) + 1)]
    return choices
