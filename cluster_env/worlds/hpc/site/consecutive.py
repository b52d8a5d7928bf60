"""Slurm's own choice of nodes where no topology is configured: runs of consecutive nodes.

As select/cons_tres does it: of the runs of nodes that a job may have, the tightest one that is
enough goes first, else the largest. In it, a job that needs one more node takes the one on which
least stays free, any other fills node after node. If that leads nowhere, nodes with few free
processors are left out, and it starts anew.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import Episode
from cluster_env.worlds.hpc.site_arrays import Layout

_MANY = 2**62


@njit_inlined
def choose_consecutive(
    episode: Episode,
    free: NDArray[np.int64],
    nodes: NDArray[np.int32],
    least: int,
    most: int,
    size: int,
) -> bool:
    """Chooses nodes given what a job `can` have on some; whether there are enough.

    See `cluster_env.worlds.hpc.site.placing.choose`, whose results these are.
    """
    room = episode.site.room
    # A job of one node needs all its processors there.
    above = np.int64(size - 1 if most == 1 else 0)
    while True:
        # What each node has for the job; a node that has less than asked for has just that.
        wide, following = np.int64(0), np.int64(_MANY)
        for place in range(nodes.size):
            room.offers[place] = 0
        for k in range(episode.status[0].roomy):
            place, can = room.place[k], room.can[k]
            units = free[nodes[place], 0] if can == size else can
            if units > above:
                room.offers[place] = units
                wide, following = wide + 1, min(following, units)
        if wide < least:
            return False
        if _fill(episode, nodes, least, most, size):
            return True
        above = following


@njit_inlined
def _fill(episode: Episode, nodes: NDArray[np.int32], least: int, most: int, size: int) -> bool:
    room, layout = episode.site.room, episode.site.layout
    left, taken = np.int64(size), np.int64(0)
    while taken < most:
        # The run of nodes that goes first.
        first, end, units, enough = np.int64(0), np.int64(0), np.int64(0), False
        place = np.int64(0)
        while place < nodes.size:
            begin, total = place, np.int64(0)
            while (
                place < nodes.size
                and room.offers[place] > 0
                and (place == begin or _follows(layout, nodes, place))
            ):
                total, place = total + room.offers[place], place + 1
            if place == begin:
                place += 1
                continue
            sufficient = bool(total >= left and place - begin >= least - taken)
            if end > 0 and layout.weight[nodes[begin]] == layout.weight[nodes[first]]:
                better = (sufficient and (not enough or total < units)) or (
                    not sufficient and total > units
                )
            else:
                better = end == 0 or layout.weight[nodes[begin]] < layout.weight[nodes[first]]
            if better:
                first, end, units, enough = begin, place, total, sufficient
        if end == 0:
            return False
        # In it, the fullest node that is enough, if one more may be.
        single = np.int64(-1)
        if least - taken <= 1:
            for k in range(first, end):
                fits = room.offers[k] >= left
                if fits and (single < 0 or room.offers[k] < room.offers[single]):
                    single = np.int64(k)
        for k in range(first, end):
            offer = np.int64(room.offers[k])
            room.offers[k] = 0
            skipped = (single >= 0 and k != single) or (taken == most - 1 and offer < left)
            if left > 0 and taken < most and not skipped:
                # One processor is left for each node that it has to take beside this one.
                part = np.int64(min(int(offer), int(left - max(int(least - taken - 1), 0))))
                room.chosen[taken], room.chosen_size[taken] = nodes[k], part
                left, taken = left - part, taken + 1
        if left == 0 and taken >= least:
            episode.status[0].chosen = taken
            return True
    return False


@njit_inlined
def _follows(layout: Layout, nodes: NDArray[np.int32], place: int) -> bool:
    """Whether a node stands right behind the one before it, and weighs the same."""
    node, before = nodes[place], nodes[place - 1]
    return bool(node == before + 1 and layout.weight[node] == layout.weight[before])
