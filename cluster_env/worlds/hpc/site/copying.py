"""Copies of episodes at a site: to play an instant again, and to go on in another batch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_called, njit_inlined, njit_kernel
from cluster_env.worlds.hpc.events import Jobs, Machine
from cluster_env.worlds.hpc.site.arrays import NO_JOB, NO_SLOT, Run
from cluster_env.worlds.hpc.site.episode import SiteBatch, SiteEpisode, episode_of
from cluster_env.worlds.hpc.site.events import add_to_sets, charge, clear_counters, release_nodes
from cluster_env.worlds.hpc.site.queue import insert


@njit_called
def rewind(site: SiteEpisode) -> None:
    """Lets jobs wait again that have started since the present instant began."""
    layout, work, run, status = site.layout, site.work, site.run, site.run.status[0]
    kept = np.int64(0)
    for place in range(status.running):
        job = np.int64(run.expected_jobs[place])
        if run.start[job] != status.time:
            run.expected[kept], run.expected_jobs[kept] = run.expected[place], job
            kept += 1
            continue
        charge(work, run, status.first + job, -1)
        release_nodes(layout, work, run, job)
        for part in (run.partitions[site.jobs[job].partition], run.partitions[-1]):
            part.running, part.waiting = part.running - 1, part.waiting + 1
        run.start[job] = NO_JOB
        insert(work, run, job, 0.0)
    status.running = kept
    # Sums as they were, to the last bit.
    for k in range(run.partitions.size):
        part = run.partitions[k]
        part.queue_log, part.queue_work = part.first_queue_log, part.first_queue_work
        part.run_log, part.run_work = part.first_run_log, part.first_run_work
        part.run_size = part.first_run_size


@njit_inlined
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copies as much of a list as both have."""
    for k in range(min(source.size, target.size)):
        target[k] = source[k]


@njit_called
def _copy_jobs(source: Run, target: Run) -> None:
    """Copies what has become of jobs, who waits and who runs."""
    _copy(source.start, target.start)
    _copy(source.finish, target.finish)
    _copy(source.eligible, target.eligible)
    _copy(source.cuts, target.cuts)
    _copy(source.lost, target.lost)
    _copy(source.queue, target.queue)
    _copy(source.keys, target.keys)
    _copy(source.ends, target.ends)
    _copy(source.running, target.running)
    _copy(source.expected, target.expected)
    _copy(source.expected_jobs, target.expected_jobs)
    _copy(source.later, target.later)
    _copy(source.later_jobs, target.later_jobs)
    _copy(source.usage, target.usage)
    _copy(source.down, target.down)
    _copy(source.clear, target.clear)
    for k in range(source.partitions.size):
        target.partitions[k] = source.partitions[k]
    for node in range(source.free.shape[0]):
        _copy(source.free[node], target.free[node])
    for job in range(min(source.at_arrival.shape[0], target.at_arrival.shape[0])):
        _copy(source.at_arrival[job], target.at_arrival[job])


@njit_called
def copy_run(source: Run, target: Run) -> None:
    """Copies an episode of the same jobs."""
    _copy_jobs(source, target)
    _copy(source.pending, target.pending)
    _copy(source.ready, target.ready)
    _copy(source.slot, target.slot)
    _copy(source.used, target.used)
    _copy(source.set_waiting, target.set_waiting)
    _copy(source.slot_next, target.slot_next)
    _copy(source.slot_node, target.slot_node)
    _copy(source.slot_size, target.slot_size)
    for k in range(source.set_free.shape[0]):
        _copy(source.set_free[k], target.set_free[k])
    for k in range(source.held.shape[0]):
        _copy(source.held[k], target.held[k])


@njit_kernel
def take_over_rows(
    machine: Machine,
    there: Jobs,
    other: SiteBatch,
    source: NDArray[np.int32],
    here: Jobs,
    batch: SiteBatch,
    target: NDArray[np.int32],
) -> None:
    """Copies episodes under way into rows that have been reset; see `Simulator.take_over`.

    Sets of nodes, counters and places in the arena of placements are numbered anew by each batch.
    """
    for i in range(source.size):
        before, after = np.int64(source[i]), np.int64(target[i])
        old = episode_of(machine, there, other, before).site
        new = episode_of(machine, here, batch, after).site
        jobset, place = new.run.status[0].jobset, new.run.status[0].place
        first, num_jobs = new.run.status[0].first, new.run.status[0].num_jobs
        num_users = new.run.status[0].num_users
        batch.status[after] = other.status[before]
        status = new.run.status[0]
        status.jobset, status.place = jobset, place
        status.first, status.num_jobs, status.num_users = first, num_jobs, num_users
        _copy_jobs(old.run, new.run)
        _follow(old, new)
        _place_again(old, new)
        _copy(other.states[before], batch.states[after])


@njit_inlined
def _follow(old: SiteEpisode, new: SiteEpisode) -> None:
    """For whom jobs wait: those that have arrived as before, later ones for who has not ended."""
    status, work, run = new.run.status[0], new.work, new.run
    arrived = min(status.coming, np.int64(old.run.pending.size))
    _copy(old.run.pending[:arrived], run.pending)
    _copy(old.run.ready[:arrived], run.ready)
    for job in range(arrived):
        index, ended_well = status.first + job, not (new.jobs[job].failed or run.lost[job])
        for k in range(work.next_first[index], work.next_first[index + 1]):
            other = work.next_jobs[k]
            if run.finish[job] < 0 or other < arrived or run.pending[other] < 0:
                continue
            think = max(new.jobs[other].think, 0)
            run.ready[other] = max(run.ready[other], run.finish[job] + think)
            run.pending[other] -= 1
            if new.jobs[other].after_ok and not ended_well:
                run.pending[other] = NO_JOB


@njit_inlined
def _place_again(old: SiteEpisode, new: SiteEpisode) -> None:
    """Puts running jobs on their nodes, and works out what sets and counters have by them."""
    run, status, slot = new.run, new.run.status[0], np.int64(0)
    clear_counters(run)
    for place in range(status.running):
        job = np.int64(run.expected_jobs[place])
        run.slot[job], theirs = slot, np.int64(old.run.slot[job])
        while theirs >= 0:
            run.slot_node[slot] = old.run.slot_node[theirs]
            run.slot_size[slot] = old.run.slot_size[theirs]
            theirs = np.int64(old.run.slot_next[theirs])
            run.slot_next[slot] = slot + 1 if theirs >= 0 else NO_SLOT
            slot += 1
        charge(new.work, run, status.first + job, 1)
    status.free_slot = slot
    for k in range(run.set_free.shape[0]):
        run.set_waiting[k] = 0
        for r in range(run.set_free.shape[1]):
            run.set_free[k, r] = 0
    for node in range(run.down.size):
        if run.down[node] == 0:
            add_to_sets(new.layout, run, node, 1)
    for place in range(status.waiting):
        run.set_waiting[new.jobs[run.queue[place]].set] += 1
