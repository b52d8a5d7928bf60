"""One pass over the queue of a site: which jobs start now, and which are blocked.

Jobs are looked at in order. A job that a limit blocks is passed over, and gets no booking; a limit
on nodes blocks it when nodes are chosen, as in Slurm, which looks for no others then. One that
does not fit is *blocked*: an overdue one gets a booking, under ``conservative`` each, under
``easy`` the first one of each partition. Under ``strict`` its nodes are closed for all jobs behind
it, under ``skip`` nothing happens. Jobs behind it may start where they delay no booking. A job for
which no time is foreseen, because nodes have failed or its reservation is over, blocks nobody.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import NEVER, expect, forget, push
from cluster_env.worlds.hpc.rules import CONSERVATIVE, EASY, STRICT
from cluster_env.worlds.hpc.site.arrays import NO_SLOT, Beginning, Layout, Run, Work
from cluster_env.worlds.hpc.site.bookings import book, find, take_checked
from cluster_env.worlds.hpc.site.events import add_to_sets, charge
from cluster_env.worlds.hpc.site.placing import add_units
from cluster_env.worlds.hpc.site.queue import Order, close_gaps, is_overdue, rank


@njit_inlined
def start_jobs(layout: Layout, work: Work, run: Run, order: Order, bounded: bool, now: int) -> None:
    """Starts the jobs that may start now. With ``bounded``, some are overdue.

    Then all goes by what users asked for, since a job that is believed too short would break the
    promise to those that are overdue.
    """
    status, mode = run.status[0], order.mode
    run.stamp[0] += 1
    status.stamp = run.stamp[0]
    status.checks, status.bookings, status.booked_nodes, status.edges = 0, 0, 0, 0
    planned = bounded or mode == CONSERVATIVE
    place, blocked, booked, begun = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    due = np.int64(0)  # so many of the blocked jobs need their bookings before anything else
    open_jobs = status.waiting  # whose sets are not closed
    while (place < status.waiting and open_jobs > 0) or booked < due:
        # Most jobs of a long queue are too wide for what is free, and nothing else is to be done.
        if booked == due and not bounded and mode != CONSERVATIVE and mode != STRICT:
            while place < status.waiting and _is_idle(work, run, mode, run.queue[place]):
                place += 1
            if place == status.waiting:
                break
        books = booked < due
        job = np.int64(run.blocked[booked] if books else run.queue[place])
        index = status.first + job
        record, part = work.records[index], run.partitions[work.records[index].partition]
        overdue = bounded and is_overdue(run, order, job, now)
        seconds = np.int64(record.limit if bounded else record.order_estimate)
        fits, wants = True, True
        if not books:
            wants = overdue or mode in (CONSERVATIVE, STRICT)
            wants = wants or (mode == EASY and part.blocked != status.stamp)
            fits = may_fit(layout, work, run, index, seconds)
            skipped = run.start[job] >= 0 or run.booked[job] == status.stamp
            skipped = skipped or run.set_closed[record.set] == status.stamp
            if skipped or not (fits or wants) or not within_limits(work, run, index):
                place += 1
                continue
            # Before anything else starts, those before it get their bookings.
            if fits and booked < blocked:
                due = blocked
                continue
        time = np.int64(NEVER)
        if fits:
            time = np.int64(find(layout, work, run, index, seconds, now, not books))
        if books:
            booked += 1
            if time == NEVER:
                part.blocked = 0 if not overdue else part.blocked
            elif mode == STRICT and not overdue:
                open_jobs -= _close(layout, run, np.int64(record.set))
            else:
                book(layout, work, run, index, time, time + seconds)
            continue
        place += 1
        if time == now and not within_limits_of_nodes(work, run, index):
            continue
        if time == now:
            take_checked(layout, work, run, index, now, now + seconds)
            start(layout, work, run, job, now, seconds if planned else np.int64(record.estimate))
            run.begun[begun], begun = job, begun + 1
            if order.anew:
                close_gaps(work, run)
                rank(layout, work, run, order, now)
                place = np.int64(0)
            continue
        if time != now and fits:
            run.too_long[record.form], run.too_long_pass[record.form] = seconds, status.stamp
        if not wants:
            continue
        # A booking can wait until another job could start, unless it is not sure that there is one.
        sure = status.down == 0 and record.reservation < 0
        if sure and mode == STRICT and not overdue:
            open_jobs -= _close(layout, run, np.int64(record.set))
            continue
        run.blocked[blocked], run.booked[job] = job, status.stamp
        blocked += 1
        if mode == EASY and not overdue:
            part.blocked = status.stamp
        due = due if sure else blocked
    if begun > 0:
        close_gaps(work, run)
    status.begun = begun
    # From now on what is believed of jobs that run counts.
    for k in range(begun if planned else 0):
        job = np.int64(run.begun[k])
        record = work.records[status.first + job]
        if record.estimate != (record.limit if bounded else record.order_estimate):
            forget(run.expected, run.expected_jobs, status.running, job)
            end = now + record.estimate
            expect(run.expected, run.expected_jobs, status.running - 1, end, job)


@njit_inlined
def bring_to(layout: Layout, work: Work, run: Run, beginning: Beginning, now: int) -> None:
    """Lets the first jobs run as they do at a moment; see `Beginning`."""
    status = run.status[0]
    for job in range(beginning.first.size - 1):
        begin, end = beginning.first[job], beginning.first[job + 1]
        status.chosen = end - begin
        for place in range(begin, end):
            run.chosen[place - begin] = beginning.node[place]
            run.chosen_size[place - begin] = beginning.size[place]
        seconds = np.int64(work.records[status.first + job].estimate)
        start(layout, work, run, np.int64(job), now, seconds)
    close_gaps(work, run)


@njit_inlined
def _is_idle(work: Work, run: Run, mode: int, job: int) -> bool:
    """Whether a job is too wide, and its partition has its first blocked job already."""
    size, which, partition = work.brief[run.status[0].first + job]
    passes = mode != EASY or run.partitions[partition].blocked == run.status[0].stamp
    return bool(passes and size > run.set_free[which, 0])


@njit_inlined
def may_fit(layout: Layout, work: Work, run: Run, index: int, seconds: int) -> bool:
    """Whether a job may fit now: units are free, and none like it was found not to fit."""
    record = work.records[index]
    known = run.too_long_pass[record.form] == run.status[0].stamp
    fits = not (known and run.too_long[record.form] <= seconds)
    for r in range(layout.units.shape[1]):
        fits = fits and work.demand[index, r] <= run.set_free[record.set, r]
    return bool(fits)


@njit_inlined
def within_limits(work: Work, run: Run, index: int) -> bool:
    """Whether no counter blocks a job, but for those of nodes."""
    within = True
    for place in range(work.charge_first[index], work.charge_first[index + 1]):
        counter = work.charge_counter[place]
        after = run.used[counter] + work.charge_amount[place]
        if work.charge_checked[place] and work.counter_row[counter] < 0:
            within = within and after <= work.counter_limit[counter]
    return bool(within)


@njit_inlined
def within_limits_of_nodes(work: Work, run: Run, index: int) -> bool:
    """Whether no counter of nodes blocks a job on its chosen nodes."""
    within = True
    for place in range(work.charge_first[index], work.charge_first[index + 1]):
        counter = work.charge_counter[place]
        row, after = work.counter_row[counter], run.used[counter]
        if row >= 0 and work.charge_checked[place]:
            for k in range(run.status[0].chosen):
                after += run.held[row, run.chosen[k]] == 0
            within = within and after <= work.counter_limit[counter]
    return bool(within)


@njit_inlined
def _close(layout: Layout, run: Run, which: int) -> int:
    """Closes the nodes of a set for all jobs behind; returns how many jobs of it wait."""
    run.set_closed[which] = run.status[0].stamp
    for place in range(layout.set_first[which], layout.set_first[which + 1]):
        run.closed[layout.set_nodes[place]] = run.status[0].stamp
    return int(run.set_waiting[which])


@njit_inlined
def start(layout: Layout, work: Work, run: Run, job: int, now: int, seconds: int) -> None:
    """Starts a job on the chosen nodes; it is expected to run for so many seconds."""
    status, index = run.status[0], run.status[0].first + job
    record, demand, running = work.records[index], work.demand[index], run.status[0].running
    run.start[job], run.slot[job] = now, np.int32(status.free_slot)
    slot = status.free_slot
    for k in range(status.chosen):
        node, size = run.chosen[k], run.chosen_size[k]
        slot = status.free_slot
        status.free_slot = run.slot_next[slot]
        run.slot_node[slot], run.slot_size[slot] = node, size
        add_to_sets(layout, run, node, -1)
        add_units(run.free[node], layout.units[node], demand, record.exclusive, size, -1)
        add_to_sets(layout, run, node, 1)
    run.slot_next[slot] = NO_SLOT
    charge(work, run, index, 1)
    push(run.ends, run.running, running, now + record.duration, job)
    expect(run.expected, run.expected_jobs, running, now + seconds, job)
    status.running = running + 1
    for part in (run.partitions[record.partition], run.partitions[-1]):
        part.waiting, part.running = part.waiting - 1, part.running + 1
        part.queue_log -= record.log
        part.queue_work -= float(record.order_estimate) * demand[0]
        part.run_log += record.log
        part.run_work += float(now + record.estimate) * demand[0]
        part.run_size += demand[0]
