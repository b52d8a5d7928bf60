"""What jobs hold at a site: their nodes, what is free there, and what counts against limits."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_called, njit_inlined
from cluster_env.worlds.hpc.events import Episode
from cluster_env.worlds.hpc.site_arrays import NO_SLOT


@njit_inlined
def share_of(demand: NDArray[np.int32], size: int, r: int) -> int:
    """Units of a resource that a job takes where it has so many of its processors."""
    if r == 0:
        return int(np.int64(size))
    return int((np.int64(demand[r]) * size + demand[0] - 1) // demand[0])


@njit_inlined
def clear_counters(episode: Episode) -> None:
    """Nothing counts against any limit."""
    site = episode.site
    for counter in range(site.used.size):
        site.used[counter] = 0
    for row in range(site.held.shape[0]):
        for node in range(site.held.shape[1]):
            site.held[row, node] = 0


@njit_called
def charge(episode: Episode, job: int, sign: int) -> None:
    """Adds a job, which has its nodes, to its counters, or takes it off."""
    site, work = episode.site, episode.site.work
    for place in range(work.charge_first[job], work.charge_first[job + 1]):
        counter = work.charge_counter[place]
        row = work.counter_row[counter]
        if row < 0:
            site.used[counter] += sign * work.charge_amount[place]
            continue
        # A node counts from the first job on it to the last.
        slot = np.int64(site.slot[job])
        while slot >= 0:
            node = site.slots[slot].node
            before = np.int64(site.held[row, node])
            site.held[row, node] += sign
            if before == 0 or before + sign == 0:
                site.used[counter] += sign
            slot = np.int64(site.slots[slot].next)


@njit_inlined
def is_charged(episode: Episode, job: int) -> bool:
    """Whether a job has any counters."""
    work = episode.site.work
    return bool(work.charge_first[job] < work.charge_first[job + 1])


@njit_called
def add_to_sets(episode: Episode, node: int, sign: int) -> None:
    """Adds what is free on a node to what is free in its sets, or takes it off."""
    site, layout = episode.site, episode.site.layout
    for place in range(layout.node_first[node], layout.node_first[node + 1]):
        for r in range(layout.units.shape[1]):
            site.set_free[layout.node_sets[place], r] += sign * site.free[node, r]


@njit_called
def give(episode: Episode, job: int, node: int, size: int, sign: int) -> None:
    """Gives back (sign 1) or takes (-1) what a job has on a node, for all sets that it is in."""
    site, layout, demand = episode.site, episode.site.layout, episode.demand[job]
    units, free, set_free = layout.units[node], site.free[node], site.set_free
    for r in range(units.size):
        whole = episode.jobs[job].exclusive
        share = sign * (units[r] if whole else share_of(demand, size, r))
        free[r] += share
        for place in range(layout.node_first[node], layout.node_first[node + 1]):
            set_free[layout.node_sets[place], r] += share


@njit_inlined
def count_free(episode: Episode) -> None:
    """Works out what is free on all nodes that are there."""
    site = episode.site
    for r in range(episode.free.size):
        episode.free[r] = 0
        for node in range(site.down.size):
            episode.free[r] += site.free[node, r] if site.down[node] == 0 else 0


@njit_called
def release_nodes(episode: Episode, job: int) -> None:
    """Gives back the nodes that a job holds, and its place in the arena."""
    site, status = episode.site, episode.status[0]
    slot, last = np.int64(site.slot[job]), np.int64(site.slot[job])
    while slot >= 0:
        held = site.slots[slot]
        give(episode, job, held.node, held.units, 1)
        last, slot = slot, np.int64(held.next)
    if not status.keeps_nodes:
        site.slots[last].next, status.free_slot = status.free_slot, np.int64(site.slot[job])


@njit_called
def take_nodes(episode: Episode, job: int) -> None:
    """Gives a job the chosen nodes."""
    site, room, status = episode.site, episode.site.room, episode.status[0]
    site.slot[job] = np.int32(status.free_slot)
    slot = status.free_slot
    for k in range(status.chosen):
        node, size = room.chosen[k], room.chosen_size[k]
        slot = status.free_slot
        status.free_slot = site.slots[slot].next
        site.slots[slot].node, site.slots[slot].units = node, size
        give(episode, job, node, size, -1)
    site.slots[slot].next = NO_SLOT
    charge(episode, job, 1)
    site.partitions[episode.jobs[job].partition].running += 1


@njit_called
def leave_nodes(episode: Episode, job: int) -> None:
    """Gives back what a job held; what has been found not to fit since may fit now."""
    status, room = episode.status[0], episode.site.room
    charge(episode, job, -1)
    release_nodes(episode, job)
    episode.site.partitions[episode.jobs[job].partition].running -= 1
    room.stamp[0] += 1
    status.settled = room.stamp[0]
