"""Copies of episodes at a site: to play an instant again, and to go on in another batch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_called, njit_inlined, njit_kernel, reference
from cluster_env.worlds.hpc.episodes import Rows, episode_of
from cluster_env.worlds.hpc.events import Episode, Machine
from cluster_env.worlds.hpc.jobs import NOBODY, Jobs
from cluster_env.worlds.hpc.site_arrays import NO_SLOT
from cluster_env.worlds.hpc.site_holding import add_to_sets, charge, clear_counters


@njit_called
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copies as much of a list as both have."""
    for k in range(min(source.size, target.size)):
        target[k] = source[k]


@njit_called
def _copy_jobs(source: Episode, target: Episode) -> None:
    """Copies what has become of jobs, who waits and who runs; the record is copied already."""
    old, new, status = source.site, target.site, target.status[0]
    _copy(source.start, target.start)
    _copy(source.ends, target.ends)
    _copy(source.running, target.running)
    _copy(source.expected, target.expected)
    _copy(source.expected_jobs, target.expected_jobs)
    _copy(source.usage, target.usage)
    _copy(old.finish, new.finish)
    _copy(old.eligible, new.eligible)
    _copy(old.cuts, new.cuts)
    _copy(old.lost, new.lost)
    _copy(old.later, new.later)
    _copy(old.later_jobs, new.later_jobs)
    _copy(old.down, new.down)
    _copy(old.clear, new.clear)
    # The queue begins at its front.
    _copy(source.queue[status.head : status.tail], target.queue)
    _copy(source.keys[status.head : status.tail], target.keys)
    status.head, status.tail = 0, status.tail - status.head
    for k in range(old.partitions.size):
        new.partitions[k] = old.partitions[k]
    for node in range(old.free.shape[0]):
        _copy(old.free[node], new.free[node])
    for job in range(min(source.at_arrival.shape[0], target.at_arrival.shape[0])):
        _copy(source.at_arrival[job], target.at_arrival[job])


@njit_called
def copy_episode(source: Episode, target: Episode) -> None:
    """Copies an episode of the same jobs."""
    _copy_jobs(source, target)
    old, new = source.site, target.site
    _copy(old.pending, new.pending)
    _copy(old.ready, new.ready)
    _copy(old.slot, new.slot)
    _copy(old.used, new.used)
    _copy(old.set_waiting, new.set_waiting)
    for k in range(old.slots.size):
        new.slots[k] = old.slots[k]
    for k in range(old.set_free.shape[0]):
        _copy(old.set_free[k], new.set_free[k])
    for k in range(old.held.shape[0]):
        _copy(old.held[k], new.held[k])


@njit_kernel
def take_over_rows(
    machine: Machine,
    there: Jobs,
    others: Rows,
    source: NDArray[np.int32],
    here: Jobs,
    rows: Rows,
    target: NDArray[np.int32],
) -> None:
    """Copies episodes under way into rows that have been reset; see `Simulator.take_over`.

    Sets of nodes, counters and places in the arena of placements are numbered anew by each batch.
    """
    for i in range(source.size):
        before, after = np.int64(source[i]), np.int64(target[i])
        old = reference(episode_of(machine, there, others, before, others, before))
        new = reference(episode_of(machine, here, rows, after, rows, after))
        status = new.status[0]
        jobset, place, num_users = status.jobset, status.place, status.num_users
        rows.status[after] = others.status[before]
        status.jobset, status.place, status.num_users = jobset, place, num_users
        _copy_jobs(old, new)
        _follow(old, new)
        _place_again(old, new)
        _copy(others.states[before], rows.states[after])


@njit_inlined
def _follow(old: Episode, new: Episode) -> None:
    """For whom jobs wait: those that have arrived as before, later ones for who has not ended."""
    site, work = new.site, new.site.work
    arrived = min(new.status[0].coming, np.int64(old.site.pending.size))
    _copy(old.site.pending[:arrived], site.pending)
    _copy(old.site.ready[:arrived], site.ready)
    for job in range(arrived):
        ended_well = not (new.jobs[job].failed or site.lost[job])
        for k in range(work.next_first[job], work.next_first[job + 1]):
            other = work.next_jobs[k]
            if site.finish[job] < 0 or other < arrived or site.pending[other] < 0:
                continue
            think = max(new.jobs[other].think, 0)
            site.ready[other] = max(site.ready[other], site.finish[job] + think)
            site.pending[other] -= 1
            if new.jobs[other].after_ok and not ended_well:
                site.pending[other] = NOBODY


@njit_inlined
def _place_again(old: Episode, new: Episode) -> None:
    """Puts running jobs on their nodes, and works out what sets and counters have by them."""
    site, status, slot = new.site, new.status[0], np.int64(0)
    clear_counters(new)
    for place in range(status.running):
        job = np.int64(new.expected_jobs[place])
        site.slot[job], theirs = slot, np.int64(old.site.slot[job])
        while theirs >= 0:
            site.slots[slot] = old.site.slots[theirs]
            theirs = np.int64(old.site.slots[theirs].next)
            site.slots[slot].next = slot + 1 if theirs >= 0 else NO_SLOT
            slot += 1
        charge(new, job, 1)
    status.free_slot = slot
    for k in range(site.set_free.shape[0]):
        site.set_waiting[k] = 0
        for r in range(site.set_free.shape[1]):
            site.set_free[k, r] = 0
    for node in range(site.down.size):
        if site.down[node] == 0:
            add_to_sets(new, node, 1)
    for place in range(status.head, status.tail):
        site.set_waiting[new.jobs[new.queue[place]].set] += 1
