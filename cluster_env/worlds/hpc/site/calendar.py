"""What happens at a site alone: changes of its calendar, and jobs that wait for others to end."""

import numpy as np

from cluster_env.core.compiled import njit_called, njit_inlined
from cluster_env.worlds.hpc.events import NEVER, Episode, begin, fade, next_of_jobs, pop, push
from cluster_env.worlds.hpc.jobs import NOBODY
from cluster_env.worlds.hpc.running import vacate
from cluster_env.worlds.hpc.site.bookings import look_ahead
from cluster_env.worlds.hpc.site_arrays import FAILURE, NO_SLOT
from cluster_env.worlds.hpc.site_holding import add_to_sets, clear_counters


@njit_called
def clear_site(episode: Episode) -> None:
    """Puts an episode at a site back to where nothing has happened yet."""
    begin(episode)
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    status.later, status.change, status.down = 0, 0, 0
    status.closes = False
    for job in range(episode.jobs.size):
        site.finish[job], site.eligible[job] = NOBODY, NOBODY
        site.cuts[job], site.lost[job], site.ready[job] = 0, False, 0
        site.slot[job] = NO_SLOT
        site.pending[job] = episode.jobs[job].predecessors
    clear_counters(episode)
    for node in range(layout.units.shape[0]):
        site.down[node], site.clear[node] = 0, NEVER
        for r in range(layout.units.shape[1]):
            site.free[node, r] = layout.units[node, r]
    for k in range(layout.set_units.shape[0]):
        site.set_waiting[k] = 0
        for r in range(layout.units.shape[1]):
            site.set_free[k, r] = layout.set_units[k, r]
    for slot in range(site.slots.size):
        site.slots[slot].next = slot + 1
    status.free_slot = 0
    for k in range(site.partitions.size):
        part = site.partitions[k]
        part.waiting, part.running, part.blocked = 0, 0, 0


@njit_inlined
def next_at_site(episode: Episode) -> int:
    """When something happens next; `NEVER` if nothing does that any job waits for."""
    layout, status = episode.site.layout, episode.status[0]
    now = np.int64(next_of_jobs(episode))
    if status.later > 0:
        now = min(now, episode.site.later[0])
    # The calendar matters as long as anybody is there.
    if status.change < layout.change_time.size and (now < NEVER or status.tail > status.head):
        now = min(now, max(layout.change_time[status.change] - status.shift, np.int64(0)))
    return int(now)


@njit_inlined
def tell_followers(episode: Episode, job: int, now: int) -> None:
    """Lets jobs know that one they wait for has ended; those that need no other become ready."""
    site, work = episode.site, episode.site.work
    status = episode.status[0]
    ended_well = not (episode.jobs[job].failed or site.lost[job])
    for place in range(work.next_first[job], work.next_first[job + 1]):
        other = work.next_jobs[place]
        record = episode.jobs[other]
        if site.pending[other] < 0:
            continue
        if record.after_ok and not ended_well:
            site.pending[other] = NOBODY
            continue
        site.pending[other] -= 1
        site.ready[other] = max(site.ready[other], now + max(record.think, 0))
        if site.pending[other] == 0:
            # In a closed loop a job is submitted when its user has seen the end of the last one.
            time = site.ready[other]
            if record.think < 0:
                time = max(time, np.int64(record.arrival))
            push(site.later, site.later_jobs, status.later, time, other)
            status.later += 1


@njit_called
def fail_nodes(episode: Episode, entry: int, now: int) -> None:
    """Nodes fail, and what runs there ends."""
    site, room, layout = episode.site, episode.site.room, episode.site.layout
    status = episode.status[0]
    for k in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
        room.failing[layout.entry_nodes[k]] = True
    victim = status.running - 1
    while victim >= 0:
        job = np.int64(episode.expected_jobs[victim])
        slot, dies = site.slot[job], False
        while slot >= 0:
            dies, slot = dies or room.failing[site.slots[slot].node], site.slots[slot].next
        victim -= 1
        if not dies:
            continue
        if episode.order.shares:
            fade(episode, now, layout.half_life)
        # Out of the heap: it goes to the top first.
        spot = np.int64(0)
        while episode.running[spot] != job:
            spot += 1
        while spot > 0:
            above = (spot - 1) >> 1
            episode.ends[spot], episode.running[spot] = episode.ends[above], episode.running[above]
            spot = above
        episode.ends[0], episode.running[0] = now, job
        pop(episode.ends, episode.running, status.running)
        vacate(episode, job, now)
        cut = site.cut.number[0]
        if cut < site.cut.place.size:
            site.cut.place[cut], site.cut.end[cut] = status.place + job, now
            site.cut.begin[cut] = episode.start[job]
        site.cut.number[0] += 1
        site.cuts[job] += 1
        if layout.lost:
            site.finish[job], site.lost[job] = now, True
            tell_followers(episode, job, now)
        else:
            episode.start[job] = NOBODY
            push(site.later, site.later_jobs, status.later, now, job)
            status.later += 1
    for k in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
        node = layout.entry_nodes[k]
        room.failing[node] = False
        if site.down[node] == 0:
            add_to_sets(episode, node, -1)
        site.down[node] += 1
        status.down += 1


@njit_inlined
def change_calendar(episode: Episode, now: int) -> None:
    """Lets all of the calendar happen that does up to now."""
    site, layout = episode.site, episode.site.layout
    status = episode.status[0]
    while (
        status.change < layout.change_time.size
        and layout.change_time[status.change] - status.shift <= now
    ):
        entry, time = layout.change_entry[status.change], layout.change_time[status.change]
        status.change, status.holds = status.change + 1, False
        if layout.entry_kind[entry] != FAILURE:
            look_ahead(episode, entry, now)
        elif time == layout.entry_start[entry]:
            fail_nodes(episode, entry, now)
        else:
            for k in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
                node = layout.entry_nodes[k]
                site.down[node] -= 1
                status.down -= 1
                if site.down[node] == 0:
                    add_to_sets(episode, node, 1)


@njit_inlined
def come_to_site(episode: Episode, now: int) -> int:
    """The next job that enters the queue now, -1 for none.

    Some arrive alone, some have waited for others, or for a reservation, or were cut short.
    """
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    job = np.int64(NOBODY)
    while job == NOBODY:
        arrives = status.coming < episode.jobs.size
        arrives = arrives and episode.jobs[status.coming].arrival <= now
        if arrives:
            job = np.int64(status.coming)
            status.coming += 1
            if episode.jobs[job].predecessors > 0:
                job = np.int64(NOBODY)
                continue
        elif status.later > 0 and site.later[0] <= now:
            job = np.int64(pop(site.later, site.later_jobs, status.later))
            status.later -= 1
        else:
            break
        if site.eligible[job] < 0:
            site.eligible[job] = now
            # A job of a reservation stays outside until that begins.
            reservation = episode.jobs[job].reservation
            if reservation >= 0 and layout.entry_start[reservation] - status.shift > now:
                opens = layout.entry_start[reservation] - status.shift
                push(site.later, site.later_jobs, status.later, opens, job)
                status.later += 1
                job = np.int64(NOBODY)
    return int(job)
