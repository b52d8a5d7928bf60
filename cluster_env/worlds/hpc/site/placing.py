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


@njit_called
def offer(episode: Episode, free: NDArray[np.int64], job: int) -> int:
    """Lists the places in a job's set of the nodes that have room, and what it `can` have on each.

    ``free`` is that of all nodes, ``(num_nodes, num_resources)``. Returns the sum of processors;
    how many places there are is noted as `roomy`. Whether nodes are open to it is not looked at.
    """
    layout, record, demand = episode.site.layout, episode.jobs[job], episode.demand[job]
    # Arrays by names of their own: those of an episode are loaded anew where others are written.
    place, can, units = episode.site.room.place, episode.site.room.can, layout.units
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    exclusive, size, total, roomy = record.exclusive, np.int64(demand[0]), np.int64(0), np.int64(0)
    if not exclusive and demand.size == 1:  # what it can have is what is free
        for k in range(nodes.size):
            there = min(size, free[nodes[k], 0])
            if there > 0:
                place[roomy], can[roomy] = k, there
                total, roomy = total + there, roomy + 1
    else:
        for k in range(nodes.size):
            node = nodes[k]
            there = np.int64(can_hold(demand, exclusive, free[node], units[node]))
            place[roomy], can[roomy] = k, there
            total, roomy = total + there, roomy + (there > 0)
    episode.status[0].roomy = roomy
    return int(total)


@njit_called
def choose(episode: Episode, free: NDArray[np.int64], job: int) -> bool:
    """Chooses nodes of a job's set, given what it `can` have on some; whether there are enough.

    ``free`` is what is free at the time, ``(num_nodes, num_resources)``. The nodes and the
    processors on them are written to `chosen` and `chosen_size`.
    """
    layout, can, places = episode.site.layout, episode.site.room.can, episode.status[0].roomy
    record, size = episode.jobs[job], np.int64(episode.demand[job, 0])
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    count, most = np.int64(record.least), np.int64(record.most)
    if layout.consecutive and choose_consecutive(episode, free, nodes, count, most, size):
        return True
    # Equal shares on as few nodes as it may take.
    share, fitting = (size + count - 1) // count, np.int64(0)
    for k in range(places):
        fitting += can[k] >= share
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
    room, layout, places = episode.site.room, episode.site.layout, episode.status[0].roomy
    share, taken, above = (size + count - 1) // count, np.int64(0), np.int64(-1)
    while taken < count:
        # All that are as full as the fullest that is left, in order.
        level, k = np.int64(_MANY), np.int64(0)
        if layout.best_fit:
            for other in range(places):
                if room.can[other] >= share:
                    rank = _rank(layout, free, nodes[room.place[other]])
                    if above < rank < level:
                        level, k = np.int64(rank), np.int64(other)
        while taken < count and k < places:
            node = nodes[room.place[k]]
            if room.can[k] >= share and (not layout.best_fit or _rank(layout, free, node) == level):
                room.chosen[taken] = node
                room.chosen_size[taken] = size // count + (1 if taken < size % count else 0)
                taken += 1
            k += 1
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
    for k in range(episode.status[0].roomy):
        if left > 0 and taken < most:
            # One processor is left for each node that it has to take beside this one.
            part = min(room.can[k], left - _kept(least, taken))
            room.chosen[taken], room.chosen_size[taken] = nodes[room.place[k]], part
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
    room, layout, places = episode.site.room, episode.site.layout, episode.status[0].roomy
    place, can, chosen, chosen_size = room.place, room.can, room.chosen, room.chosen_size
    left, taken, level = np.int64(size), np.int64(0), np.int64(0)
    for k in range(places):
        level = max(level, can[k])
    while left > 0 and taken < most and level > 0:
        below = np.int64(0)
        for k in range(places):
            if can[k] < level:
                below = max(below, can[k])
            if can[k] != level:
                continue
            if left == 0 or taken == most:
                break
            part = min(level, left - _kept(least, taken))
            last = np.int64(k)
            if part == left:  # the rest fits on one
                rank = _rank(layout, free, nodes[place[k]])
                for other in range(places):
                    # Those with more are taken already, but for equal ones before this place.
                    fits = can[other] >= left and (
                        can[other] < level or (can[other] == level and other > k)
                    )
                    if fits and _rank(layout, free, nodes[place[other]]) < rank:
                        last, rank = np.int64(other), _rank(layout, free, nodes[place[other]])
            chosen[taken], chosen_size[taken] = nodes[place[last]], part
            left, taken = left - part, taken + 1
        level = below
    episode.status[0].chosen = taken
    return bool(left == 0 and taken >= least)
