"""Priorities that put jobs into an order, with as few changes as possible."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

GAP = 64
"""Between neighbours where numbers are handed out anew, so that others find room between them."""

LOWEST, HIGHEST = 1_000_000_000, 4_294_900_000
"""Numbers that are used: above what multifactor priorities come to, so that what has just been
submitted stands behind until it is ranked, and below what `priority/basic` hands out."""


def new_priorities(order: Sequence[str], current: Mapping[str, int]) -> list[tuple[str, int]]:
    """What has to be set, so that priorities fall along an order.

    Jobs whose priorities stand in the right order already keep them. A site may start jobs between
    any two changes. So first go those that move down, from the bottom; then those that move up,
    from the top: at no time does a job stand above one that is to start before it and did not
    before.

    Args:
        order: jobs, the first to start first.
        current: their priorities now; 0 of a job that is held.

    Returns:
        Jobs and priorities, in the order in which they are to be set.
    """
    values = [current[job] for job in order]
    keep = _longest_rising([-value if LOWEST <= value <= HIGHEST else None for value in values])
    wanted = _between(order, current, keep) or {
        job: LOWEST + GAP * (len(order) - place) for place, job in enumerate(order)
    }
    changes = [(job, wanted[job]) for job in order if wanted[job] != current[job]]
    down = [change for change in reversed(changes) if change[1] < current[change[0]]]
    up = [change for change in changes if change[1] > current[change[0]]]
    return [*down, *up]


def _between(
    order: Sequence[str], current: Mapping[str, int], keep: Sequence[int]
) -> dict[str, int] | None:
    """Numbers for the others between those that keep theirs; None if there is too little room."""
    wanted = {order[place]: current[order[place]] for place in keep}
    above, begin = HIGHEST, 0
    for stop in [*keep, len(order)]:
        last = stop == len(order)
        count = stop - begin
        below = LOWEST if last else current[order[stop]]
        if last and not keep:
            return None
        step = min((above - below) // (count + 1), GAP)
        if count and step < 1:
            return None
        base = above if above < HIGHEST else below + step * (count + 1)
        for k in range(count):
            wanted[order[begin + k]] = base - step * (k + 1)
        begin, above = stop + 1, below
    return wanted


def _longest_rising(values: Sequence[int | None]) -> list[int]:
    """Places of a longest part that rises strictly; None is in no such part."""
    tails: list[int] = []  # the smallest end of a rising part of each length, and its place
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
