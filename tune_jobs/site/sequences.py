"""From one sequence to another with few changes."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any


def longest_rising(values: Sequence[int | None]) -> list[int]:
    """Places of a longest part that rises strictly; None is in no such part."""
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        k = len(tails) if value is None else bisect_left(tails, value)
        before.append(at[k - 1] if k else -1)
        if value is not None:
            tails[k : k + 1] = [value]
            at[k : k + 1] = [place]
    chain, place = [], at[-1] if at else -1
    while place >= 0:
        chain.append(place)
        place = before[place]
    return chain[::-1]


def moves(before: Sequence[str], now: Sequence[str]) -> dict[str, list[Any]]:
    """What makes one order of different names of another.

    Returns:
        ``out``: names to take out; ``in``: places and names to put in then, one after the other.
    """
    places = {name: place for place, name in enumerate(before)}
    stays = {now[k] for k in longest_rising([places.get(name) for name in now])}
    return {
        "out": [name for name in before if name not in stays],
        "in": [[place, name] for place, name in enumerate(now) if name not in stays],
    }


def moved(before: Sequence[str], change: dict[str, list[Any]]) -> list[str]:
    """The order that `moves` leads to.

    Raises:
        ValueError: if the change is none of this order.
    """
    out = set(change["out"])
    if not out <= set(before):
        raise ValueError("names are taken out that are not there")
    order = [name for name in before if name not in out]
    for place, name in change["in"]:
        if not 0 <= place <= len(order):
            raise ValueError("a name is put in beyond the end")
        order.insert(place, name)
    return order
