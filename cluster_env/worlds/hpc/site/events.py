"""What happens at one instant before a pass: ends, changes of the calendar, and jobs that come."""

import math

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import (
    FREE_PROCESSORS,
    NEVER,
    QUEUE_SIZE,
    QUEUED_WORK,
    RECENT,
    REMAINING_WORK,
    forget,
    log_thousandths,
    pop,
    push,
)
from cluster_env.worlds.hpc.site.arrays import FAILURE, NO_JOB, NO_SLOT, Layout, Run, Work
from cluster_env.worlds.hpc.site.bookings import look_ahead
from cluster_env.worlds.hpc.site.placing import add_units


@njit_inlined
def clear(layout: Layout, work: Work, run: Run) -> None:
    """Puts an episode back to where nothing has happened yet."""
    status = run.status[0]
    status.head, status.waiting, status.running, status.coming, status.later = 0, 0, 0, 0, 0
    status.change, status.down, status.faded = 0, 0, 0
    status.time, status.event, status.decided = 0, 0, -1
    status.active, status.truncated, status.reward = True, False, 0.0
    status.shares, status.counts = True, True
    status.holds, status.plans, status.closes, status.last = False, False, False, NO_JOB
    status.narrowest, status.new_jobs = NEVER, 0
    for job in range(status.num_jobs):
        run.start[job], run.finish[job], run.eligible[job] = NO_JOB, NO_JOB, NO_JOB
        run.cuts[job], run.lost[job], run.ready[job] = 0, False, 0
        run.slot[job] = NO_SLOT
        run.pending[job] = work.records[status.first + job].predecessors
    clear_counters(run)
    for user in range(run.usage.size):
        run.usage[user] = 0.0
    for node in range(layout.units.shape[0]):
        run.down[node], run.clear[node] = 0, NEVER
        for r in range(layout.units.shape[1]):
            run.free[node, r] = layout.units[node, r]
    for k in range(layout.set_units.shape[0]):
        for r in range(layout.units.shape[1]):
            run.set_free[k, r] = layout.set_units[k, r]
    for k in range(run.set_waiting.size):
        run.set_waiting[k] = 0
    for slot in range(run.slot_next.size):
        run.slot_next[slot] = slot + 1
    status.free_slot = 0
    for k in range(run.partitions.size):
        part = run.partitions[k]
        part.waiting, part.running, part.arrived, part.last_arrival = 0, 0, 0, 0
        part.blocked = 0
        part.queue_log, part.queue_work = 0.0, 0.0
        part.run_log, part.run_work, part.run_size = 0.0, 0.0, 0.0
        part.log, part.log_square, part.area, part.area_square = 0.0, 0.0, 0.0, 0.0
        part.log_gap, part.work, part.gap = 0.0, 0.0, 0.0


@njit_inlined
def next_instant(layout: Layout, work: Work, run: Run) -> int:
    """When something happens next; `NEVER` if nothing does that any job waits for."""
    status, now = run.status[0], np.int64(NEVER)
    if status.coming < status.num_jobs:
        now = np.int64(work.records[status.first + status.coming].arrival)
    if status.running > 0:
        now = min(now, run.ends[0])
    if status.later > 0:
        now = min(now, run.later[0])
    # The calendar matters as long as anybody is there.
    if status.change < layout.change_time.size and (now < NEVER or status.waiting > 0):
        now = min(now, max(layout.change_time[status.change] - status.shift, np.int64(0)))
    return int(now)


@njit_inlined
def clear_counters(run: Run) -> None:
    """Nothing counts against any limit."""
    for counter in range(run.used.size):
        run.used[counter] = 0
    for row in range(run.held.shape[0]):
        for node in range(run.held.shape[1]):
            run.held[row, node] = 0


@njit_inlined
def charge(work: Work, run: Run, job: int, sign: int) -> None:
    """Adds a job (counted among all), which has its nodes, to its counters, or takes it off."""
    for place in range(work.charge_first[job], work.charge_first[job + 1]):
        counter = work.charge_counter[place]
        row = work.counter_row[counter]
        if row < 0:
            run.used[counter] += sign * work.charge_amount[place]
            continue
        # A node counts from the first job on it to the last.
        slot = np.int64(run.slot[job - run.status[0].first])
        while slot >= 0:
            node = run.slot_node[slot]
            before = np.int64(run.held[row, node])
            run.held[row, node] += sign
            if before == 0 or before + sign == 0:
                run.used[counter] += sign
            slot = np.int64(run.slot_next[slot])


@njit_inlined
def is_charged(work: Work, job: int) -> bool:
    """Whether a job (counted among all) has any counters."""
    return bool(work.charge_first[job] < work.charge_first[job + 1])


@njit_inlined
def add_to_sets(layout: Layout, run: Run, node: int, sign: int) -> None:
    """Adds what is free on a node to what is free in its sets, or takes it off."""
    for place in range(layout.node_first[node], layout.node_first[node + 1]):
        for r in range(layout.units.shape[1]):
            run.set_free[layout.node_sets[place], r] += sign * run.free[node, r]


@njit_inlined
def fade(layout: Layout, run: Run, now: int) -> None:
    """Lets what users have used fade, where an order looks at it."""
    if run.status[0].shares and run.usage.size > 1:
        faded = 0.5 ** ((now - run.status[0].faded) / layout.half_life)
        for user in range(run.usage.size):
            run.usage[user] *= faded
        run.status[0].faded = now


@njit_inlined
def release_nodes(layout: Layout, work: Work, run: Run, job: int) -> None:
    """Gives back the nodes that a job holds, and its place in the arena."""
    status, index = run.status[0], run.status[0].first + job
    record, demand = work.records[index], work.demand[index]
    slot, last = run.slot[job], run.slot[job]
    while slot >= 0:
        node = run.slot_node[slot]
        add_to_sets(layout, run, node, -1)
        size = run.slot_size[slot]
        add_units(run.free[node], layout.units[node], demand, record.exclusive, size, 1)
        add_to_sets(layout, run, node, 1)
        last, slot = slot, run.slot_next[slot]
    if not status.keeps_nodes:
        run.slot_next[last], status.free_slot = status.free_slot, np.int64(run.slot[job])


@njit_inlined
def release(layout: Layout, work: Work, run: Run, job: int, now: int) -> None:
    """Gives back what a job held (counted in its jobset), and counts it for its user."""
    status = run.status[0]
    index = status.first + job
    record, demand, running = work.records[index], work.demand[index], status.running
    charge(work, run, index, -1)
    release_nodes(layout, work, run, job)
    end = forget(run.expected, run.expected_jobs, running, job)
    if status.counts:
        for part in (run.partitions[record.partition], run.partitions[-1]):
            part.running -= 1
            part.run_log -= record.log
            part.run_work -= float(end) * demand[0]
            part.run_size -= demand[0]
    if status.shares:
        run.usage[record.user] += float(now - run.start[job]) * demand[0]
    status.running = running - 1
    # A plan is the same when it is made anew, if all goes as it has it and no limit opens.
    as_planned = end == now and not is_charged(work, index)
    status.holds = status.holds and status.plans and as_planned
    run.stamp[0] += 1
    status.settled = run.stamp[0]


@njit_inlined
def tell_followers(work: Work, run: Run, job: int, now: int) -> None:
    """Lets jobs know that one they wait for has ended; those that need no other become ready."""
    status, index = run.status[0], run.status[0].first + job
    if work.next_first[index] == work.next_first[index + 1]:
        return
    ended_well = not (work.records[index].failed or run.lost[job])
    for place in range(work.next_first[index], work.next_first[index + 1]):
        other = work.next_jobs[place]
        record = work.records[status.first + other]
        if run.pending[other] < 0:
            continue
        if record.after_ok and not ended_well:
            run.pending[other] = NO_JOB
            continue
        run.pending[other] -= 1
        run.ready[other] = max(run.ready[other], now + max(record.think, 0))
        if run.pending[other] == 0:
            # In a closed loop a job is submitted when its user has seen the end of the last one.
            time = run.ready[other]
            if record.think < 0:
                time = max(time, np.int64(record.arrival))
            push(run.later, run.later_jobs, status.later, time, other)
            status.later += 1


@njit_inlined
def raise_outlived(work: Work, run: Run, now: int) -> None:
    """Moves expected ends that have passed, see `cluster_env.worlds.hpc.events.raise_outlived`."""
    status, times, jobs = run.status[0], run.expected, run.expected_jobs
    place, status.holds = status.running - 1, False
    while place >= 0 and times[place] <= now:
        job = jobs[place]
        record, start = work.records[status.first + job], run.start[job]
        limit, before = np.int64(record.limit), times[place]
        last = start + limit
        if before >= last:
            place -= 1
            continue
        seconds = before - start
        while start + seconds <= now and start + seconds < last:
            seconds = min(2 * seconds, limit)
        hole, end = place, start + seconds
        while hole > 0 and times[hole - 1] < end:
            times[hole], jobs[hole] = times[hole - 1], jobs[hole - 1]
            hole -= 1
        times[hole], jobs[hole] = end, job
        if status.counts:
            added = float(end - before) * work.demand[status.first + job, 0]
            run.partitions[record.partition].run_work += added
            run.partitions[-1].run_work += added


@njit_inlined
def finish_jobs(layout: Layout, work: Work, run: Run, now: int) -> None:
    """Lets all jobs finish that end now."""
    status = run.status[0]
    if status.running > 0 and run.ends[0] <= now:
        fade(layout, run, now)
    while status.running > 0 and run.ends[0] == now:
        job = np.int64(pop(run.ends, run.running, status.running))
        run.finish[job] = now
        release(layout, work, run, job, now)
        tell_followers(work, run, job, now)


@njit_inlined
def fail_nodes(layout: Layout, work: Work, run: Run, entry: int, now: int) -> None:
    """Nodes fail, and what runs there ends."""
    status = run.status[0]
    for k in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
        run.failing[layout.entry_nodes[k]] = True
    victim = status.running - 1
    while victim >= 0:
        job = np.int64(run.expected_jobs[victim])
        slot, dies = run.slot[job], False
        while slot >= 0:
            dies, slot = dies or run.failing[run.slot_node[slot]], run.slot_next[slot]
        victim -= 1
        if not dies:
            continue
        fade(layout, run, now)
        # Out of the heap: it goes to the top first.
        spot = np.int64(0)
        while run.running[spot] != job:
            spot += 1
        while spot > 0:
            above = (spot - 1) >> 1
            run.ends[spot], run.running[spot] = run.ends[above], run.running[above]
            spot = above
        run.ends[0], run.running[0] = now, job
        pop(run.ends, run.running, status.running)
        release(layout, work, run, job, now)
        cut = run.cut.number[0]
        if cut < run.cut.place.size:
            run.cut.place[cut], run.cut.end[cut] = status.place + job, now
            run.cut.begin[cut] = run.start[job]
        run.cut.number[0] += 1
        run.cuts[job] += 1
        if layout.lost:
            run.finish[job], run.lost[job] = now, True
            tell_followers(work, run, job, now)
        else:
            run.start[job] = NO_JOB
            push(run.later, run.later_jobs, status.later, now, job)
            status.later += 1
    for k in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
        node = layout.entry_nodes[k]
        run.failing[node] = False
        if run.down[node] == 0:
            add_to_sets(layout, run, node, -1)
        run.down[node] += 1
        status.down += 1


@njit_inlined
def change_calendar(layout: Layout, work: Work, run: Run, now: int) -> None:
    """Lets all of the calendar happen that does up to now."""
    status = run.status[0]
    while (
        status.change < layout.change_time.size
        and layout.change_time[status.change] - status.shift <= now
    ):
        entry, time = layout.change_entry[status.change], layout.change_time[status.change]
        status.change, status.holds = status.change + 1, False
        if layout.entry_kind[entry] != FAILURE:
            look_ahead(layout, run, entry, now)
        elif time == layout.entry_start[entry]:
            fail_nodes(layout, work, run, entry, now)
        else:
            for k in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
                node = layout.entry_nodes[k]
                run.down[node] -= 1
                status.down -= 1
                if run.down[node] == 0:
                    add_to_sets(layout, run, node, 1)


@njit_inlined
def count_arrival(work: Work, run: Run, job: int, now: int) -> None:
    """Brings the sums and recent means of its partition up to date when a job enters the queue."""
    record = work.records[run.status[0].first + job]
    size = np.int64(work.demand[run.status[0].first + job, 0])
    if not run.status[0].counts:
        run.partitions[record.partition].waiting += 1
        return
    log, effort = record.log, float(record.order_estimate) * size
    area, new = log + math.log(size), run.cuts[job] == 0  # else it has come before
    for part in (run.partitions[record.partition], run.partitions[-1]):
        part.waiting += 1
        part.queue_log += log
        part.queue_work += effort
        if new:
            gap = float(now - part.last_arrival) if part.arrived > 0 else 0.0
            part.arrived, part.last_arrival = part.arrived + 1, now
            share = 1.0 / min(float(part.arrived), float(RECENT))
            part.log += share * (log - part.log)
            part.log_square += share * (log * log - part.log_square)
            part.area += share * (area - part.area)
            part.area_square += share * (area * area - part.area_square)
            part.log_gap += share * (math.log(1.0 + gap) - part.log_gap)
            part.work += share * (effort - part.work)
            part.gap += share * (gap - part.gap)


@njit_inlined
def note_arrival(layout: Layout, run: Run, job: int, now: int) -> None:
    """Keeps what is true when a job enters the queue, see `AT_ARRIVAL`."""
    sums, seen, free = run.partitions[-1], run.at_arrival[job], np.int64(0)
    for node in range(layout.units.shape[0]):
        free += run.free[node, 0] if run.down[node] == 0 else 0
    seen[QUEUE_SIZE] = run.status[0].waiting
    seen[QUEUED_WORK] = log_thousandths(sums.queue_work)
    seen[FREE_PROCESSORS] = free
    seen[REMAINING_WORK] = log_thousandths(sums.run_work - now * sums.run_size)
