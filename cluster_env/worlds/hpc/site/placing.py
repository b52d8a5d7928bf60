"""On which nodes a job fits, and which of them it gets.

A job's memory and GPUs go with its processors in equal shares: where it has p of its P processors,
it takes the p-th part of them, rounded up. With `nodes` given it takes exactly so many, at least
one processor on each; else one node if one can hold it, and as few as the placement gives if not.
An exclusive job takes idle nodes whole.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_called, njit_inlined
from cluster_env.worlds.hpc.events import Episode
from cluster_env.worlds.hpc.site.consecutive import choose_consecutive
from cluster_env.worlds.hpc.site_arrays import Layout
from cluster_env.worlds.hpc.site_holding import share_of

_MANY = 2**62


@njit_inlined
def can_hold(
    demand: NDArray[np.int32], exclusive: bool, free: NDArray[np.int64], units: NDArray[np.int64]
) -> int:
    """Processors, up to all of its own, that a job could have on a node."""
    if exclusive and free[0] != units[0]:
        return int(np.int64(0))
    size = np.int64(demand[0])
    most = min(free[0], size)
    for r in range(1, free.size):
        if demand[r] > 0:
            most = min(most, free[r] * size // demand[r])
    return int(most)


@njit_inlined
def add_units(
    free: NDArray[np.int64],
    units: NDArray[np.int64],
    demand: NDArray[np.int32],
    exclusive: bool,
    size: int,
    sign: int,
) -> None:
    """Gives back (sign 1) or takes (-1) what a job holds on a node with so many processors."""
    for r in range(free.size):
        free[r] += sign * (units[r] if exclusive else share_of(demand, size, r))


@njit_inlined
def lower(
    units: NDArray[np.int64],
    can: NDArray[np.int64],
    nodes: NDArray[np.int32],
    demand: NDArray[np.int32],
    exclusive: bool,
    free: NDArray[np.int64],
) -> int:
    """Lowers what a job can have on each of some nodes to what is free; returns the sum.

    ``free`` is that of all nodes, ``(num_nodes, num_resources)``, of as many ``units``. It is
    `can_hold` of many nodes.
    """
    total, size = np.int64(0), np.int64(demand[0])
    for r in range(1, demand.size):
        if demand[r] > 0:
            for k in range(nodes.size):
                can[k] = min(can[k], free[nodes[k], r] * size // demand[r])
    if exclusive:
        for k in range(nodes.size):
            can[k] = can[k] if free[nodes[k], 0] == units[nodes[k], 0] else 0
    for k in range(nodes.size):
        can[k] = min(can[k], free[nodes[k], 0])
        total += can[k]
    return int(total)


@njit_called
def choose(episode: Episode, free: NDArray[np.int64], job: int) -> bool:
    """Chooses nodes of a job's set, given what it `can` have on each; whether there are enough.

    ``free`` is what is free at the time, ``(num_nodes, num_resources)``. The nodes and the
    processors on them are written to `chosen` and `chosen_size`.
    """
    layout, can = episode.site.layout, episode.site.room.can
    record, size = episode.jobs[job], np.int64(episode.demand[job, 0])
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    count, most = np.int64(record.least), np.int64(record.most)
    if layout.consecutive and choose_consecutive(episode, free, nodes, count, most, size):
        return True
    # Equal shares on as few nodes as it may take.
    share, fitting = (size + count - 1) // count, np.int64(0)
    for place in range(nodes.size):
        fitting += can[place] >= share
    if fitting >= count:
        _choose_equal(episode, free, nodes, count, size)
        return True
    # Else as the order has it, or those on which it can have most; the last one where it just fits.
    done = not layout.best_fit and _choose_in_order(episode, nodes, count, most, size)
    return done or _choose_largest(episode, free, nodes, count, most, size)


@njit_inlined
def _choose_equal(
    episode: Episode, free: NDArray[np.int64], nodes: NDArray[np.int32], count: int, size: int
) -> None:
    """Chooses nodes that each can hold an equal share: those with least free, or the first ones."""
    room, layout = episode.site.room, episode.site.layout
    share, taken, above = (size + count - 1) // count, np.int64(0), np.int64(-1)
    while taken < count:
        # All that are as full as the fullest that is left, in order.
        level, place = np.int64(_MANY), np.int64(0)
        if layout.best_fit:
            for other in range(nodes.size):
                if room.can[other] >= share:
                    rank = _rank(layout, free, nodes[other])
                    if above < rank < level:
                        level, place = np.int64(rank), np.int64(other)
        while taken < count and place < nodes.size:
            if room.can[place] >= share and (
                not layout.best_fit or _rank(layout, free, nodes[place]) == level
            ):
                room.chosen[taken] = nodes[place]
                room.chosen_size[taken] = size // count + (1 if taken < size % count else 0)
                taken += 1
            place += 1
        above = level
    episode.status[0].chosen = count


@njit_inlined
def _rank(layout: Layout, free: NDArray[np.int64], node: int) -> int:
    """Nodes of low weight go first, and of these the ones with few processors free."""
    return int((layout.weight[node] << 32) + free[node, 0])


@njit_inlined
def _kept(least: int, taken: int) -> int:
    """Processors to keep for nodes that a job has to take beside the next one, one for each."""
    return int(max(least - taken - 1, 0))


@njit_inlined
def _choose_in_order(
    episode: Episode, nodes: NDArray[np.int32], least: int, most: int, size: int
) -> bool:
    """Fills one node after the other."""
    room, left, taken = episode.site.room, np.int64(size), np.int64(0)
    for place in range(nodes.size):
        if left > 0 and taken < most and room.can[place] > 0:
            # One processor is left for each node that it has to take beside this one.
            part = min(room.can[place], left - _kept(least, taken))
            room.chosen[taken], room.chosen_size[taken] = nodes[place], part
            left, taken = left - part, taken + 1
    episode.status[0].chosen = taken
    return bool(left == 0 and taken >= least)


@njit_inlined
def _choose_largest(
    episode: Episode,
    free: NDArray[np.int64],
    nodes: NDArray[np.int32],
    least: int,
    most: int,
    size: int,
) -> bool:
    """Takes the nodes on which a job can have most, and for the rest the one that just holds it."""
    room, layout = episode.site.room, episode.site.layout
    left, taken, level = np.int64(size), np.int64(0), np.int64(0)
    for place in range(nodes.size):
        level = max(level, room.can[place])
    while left > 0 and taken < most and level > 0:
        below = np.int64(0)
        for place in range(nodes.size):
            if room.can[place] < level:
                below = max(below, room.can[place])
            if room.can[place] != level:
                continue
            if left == 0 or taken == most:
                break
            part = min(level, left - _kept(least, taken))
            last = np.int64(place)
            if part == left:  # the rest fits on one
                rank = _rank(layout, free, nodes[place])
                for other in range(nodes.size):
                    # Those with more are taken already, but for equal ones before this place.
                    fits = room.can[other] >= left and (
                        room.can[other] < level or (room.can[other] == level and other > place)
                    )
                    if fits and _rank(layout, free, nodes[other]) < rank:
                        last, rank = np.int64(other), _rank(layout, free, nodes[other])
            room.chosen[taken], room.chosen_size[taken] = nodes[last], part
            left, taken = left - part, taken + 1
        level = below
    episode.status[0].chosen = taken
    return bool(left == 0 and taken >= least)
