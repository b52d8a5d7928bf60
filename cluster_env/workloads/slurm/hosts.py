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
        found = _NAME.match(text, place)
        if not found or not found[0] or text[found.end() : found.end() + 1] not in ("", ","):
            raise ValueError("a list of hosts has names, separated by commas")
        pieces = [_choices(*piece) for piece in _PIECE.findall(found[0])]
        count = len(names)
        for piece in pieces:
            count = max(count, 1) * len(piece)
        if count > MOST_HOSTS:
            raise ValueError(f"a list of hosts has more than {MOST_HOSTS} names")
        names += ("".join(parts) for parts in product(*pieces))
        place = found.end() + 1
    return tuple(names)


def _choices(ranges: str, plain: str) -> list[str]:
    if plain:
        return [plain]
    found = []
    for part in ranges.split(","):
        numbers = _RANGE.fullmatch(part)
        if not numbers:
            raise ValueError("a range of hosts is no range")
        first, last = numbers[1], numbers[2] or numbers[1]
        if int(last) - int(first) > MOST_HOSTS:
            raise ValueError(f"a list of hosts has more than {MOST_HOSTS} names")
        found += [str(k).zfill(len(first)) for k in range(int(first), int(last) + 1)]
    return found
