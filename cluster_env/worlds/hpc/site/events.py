"""What happens at one instant before a pass: ends, changes of the calendar, and jobs that come."""

import numpy as np

from cluster_env.core.compiled import njit_called, njit_inlined
from cluster_env.worlds.hpc.events import (
    NEVER,
    Episode,
    begin,
    count_arrival,
    count_end,
    count_usage,
    fade,
    forget,
    learn_ended,
    next_event,
    note_arrival,
    pop,
    predict_entering,
    push,
    raise_outlived,
)
from cluster_env.worlds.hpc.jobs import NOBODY
from cluster_env.worlds.hpc.queue import enter, first_key
from cluster_env.worlds.hpc.site.bookings import look_ahead
from cluster_env.worlds.hpc.site.placing import share_of
from cluster_env.worlds.hpc.site_arrays import FAILURE, NO_SLOT


@njit_called
def clear_site(episode: Episode) -> None:
    """Puts an episode at a site back to where nothing has happened yet."""
    begin(episode)
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    status.later, status.change, status.down = 0, 0, 0
    status.shares, status.counts = True, True
    status.holds, status.plans, status.closes, status.last = False, False, False, NOBODY
    status.new_jobs = 0
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
    for slot in range(site.slot_next.size):
        site.slot_next[slot] = slot + 1
    status.free_slot = 0
    for k in range(site.partitions.size):
        part = site.partitions[k]
        part.waiting, part.running, part.blocked = 0, 0, 0


@njit_inlined
def next_at_site(episode: Episode) -> int:
    """When something happens next; `NEVER` if nothing does that any job waits for."""
    layout, status = episode.site.layout, episode.status[0]
    now = np.int64(next_event(episode))
    if status.later > 0:
        now = min(now, episode.site.later[0])
    # The calendar matters as long as anybody is there.
    if status.change < layout.change_time.size and (now < NEVER or status.tail > status.head):
        now = min(now, max(layout.change_time[status.change] - status.shift, np.int64(0)))
    return int(now)


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
            node = site.slot_node[slot]
            before = np.int64(site.held[row, node])
            site.held[row, node] += sign
            if before == 0 or before + sign == 0:
                site.used[counter] += sign
            slot = np.int64(site.slot_next[slot])


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
    slot, last = site.slot[job], site.slot[job]
    while slot >= 0:
        give(episode, job, site.slot_node[slot], site.slot_size[slot], 1)
        last, slot = slot, site.slot_next[slot]
    if not status.keeps_nodes:
        site.slot_next[last], status.free_slot = status.free_slot, np.int64(site.slot[job])


@njit_inlined
def release(episode: Episode, job: int, now: int) -> None:
    """Gives back what a job held, and counts it for its user."""
    status, room = episode.status[0], episode.site.room
    charge(episode, job, -1)
    release_nodes(episode, job)
    end = forget(episode.expected, episode.expected_jobs, status.running, job)
    episode.site.partitions[episode.jobs[job].partition].running -= 1
    if status.counts:
        count_end(episode, job, end)
    if status.shares:
        count_usage(episode, job, now)
    status.running -= 1
    # A plan is the same when it is made anew, if all goes as it has it and no limit opens.
    as_planned = end == now and not is_charged(episode, job)
    status.holds = status.holds and status.plans and as_planned
    room.stamp[0] += 1
    status.settled = room.stamp[0]


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


@njit_inlined
def finish_jobs(episode: Episode, now: int) -> None:
    """Lets all jobs finish that end now."""
    status = episode.status[0]
    before = status.running
    if status.shares and status.running > 0 and episode.ends[0] <= now:
        fade(episode, now, episode.site.layout.half_life)
    while status.running > 0 and episode.ends[0] == now:
        job = np.int64(pop(episode.ends, episode.running, status.running))
        episode.site.finish[job] = now
        release(episode, job, now)
        tell_followers(episode, job, now)
        episode.running[status.running] = job  # see `learn_ended`
    if status.model > 0:
        learn_ended(episode, before)


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
            dies, slot = dies or room.failing[site.slot_node[slot]], site.slot_next[slot]
        victim -= 1
        if not dies:
            continue
        if status.shares:
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
        release(episode, job, now)
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


@njit_called
def advance_site(episode: Episode, now: int) -> None:
    """Lets all happen that happens at one instant before anybody decides."""
    status = episode.status[0]
    finish_jobs(episode, now)
    change_calendar(episode, now)
    if status.running > 0 and episode.expected[status.running - 1] <= now:
        raise_outlived(episode, now, status.counts)
        status.holds = False
    _let_come(episode, now)


@njit_inlined
def _let_come(episode: Episode, now: int) -> None:
    """Lets jobs enter the queue: those that arrive alone, and those that waited for others."""
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    status.new_jobs = 0
    while True:
        arrives = status.coming < episode.jobs.size
        arrives = arrives and episode.jobs[status.coming].arrival <= now
        job = np.int64(status.coming)
        if arrives:
            status.coming += 1
            if episode.jobs[job].predecessors > 0:
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
                continue
        if status.model > 0:
            predict_entering(episode, job)
        if status.counts:
            if episode.at_arrival.shape[0] > 0:
                count_free(episode)
                note_arrival(episode, job, status.tail - status.head, now)
            count_arrival(episode, job, now, site.cuts[job] == 0)
        enter(episode, job, first_key(episode, site.order.rule, job))
