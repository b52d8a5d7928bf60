"""One pass over the queue of a site: which jobs start now, and which are blocked.

Jobs are looked at in order. A job that a limit blocks is passed over, and gets no booking; a limit
on nodes blocks it when nodes are chosen, as in Slurm, which looks for no others then. One that
does not fit is *blocked*: an overdue one gets a booking, under ``conservative`` each, under
``easy`` the first one of each partition. Under ``strict`` its nodes are closed for all jobs behind
it, under ``skip`` nothing happens. Jobs behind it may start where they delay no booking. A job for
which no time is foreseen, because nodes have failed or its reservation is over, blocks nobody.

A pass *holds* as long as one that is made anew would come to the same: nothing ends or changes, and
no job that has started is still there when a booking begins, where it might change which nodes that
one takes. Then a job that comes alone, behind all that are blocked, is all that is looked at. Under
``conservative`` it holds, too, when jobs end as planned: those that are booked for now start.
"""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import NEVER, expect, forget, push
from cluster_env.worlds.hpc.rules import CONSERVATIVE, EASY, FIXED, SKIP, STRICT
from cluster_env.worlds.hpc.site.arrays import NO_SLOT, Beginning, Layout, Run, Work
from cluster_env.worlds.hpc.site.bookings import book, find, forget_checks, take_checked
from cluster_env.worlds.hpc.site.events import add_to_sets, charge, is_charged
from cluster_env.worlds.hpc.site.placing import add_units
from cluster_env.worlds.hpc.site.queue import Order, is_overdue, leave, rank

_WIDEST = np.int32(2**31 - 1)


@njit_inlined
def start_jobs(layout: Layout, work: Work, run: Run, order: Order, bounded: bool, now: int) -> None:
    """Starts the jobs that may start now. With ``bounded``, some are overdue.

    Then all goes by what users asked for, since a job that is believed too short would break the
    promise to those that are overdue.
    """
    status, mode = run.status[0], order.mode
    planned = bounded or mode == CONSERVATIVE
    status.holds = status.holds and not bounded
    if status.holds and status.plans:
        status.holds = _can_go_on(layout, run, now)
    elif status.holds and status.new_jobs == 0:
        return
    # From which place to which; jobs whose sets are not closed; partitions without a blocked job.
    whole, place, open_jobs = not status.holds, status.head + status.new_place, np.int64(1)
    stop, unblocked = place + 1, np.int64(1)
    if whole:
        _begin(run)
        place, open_jobs, unblocked = np.int64(status.head), status.waiting, np.int64(0)
        stop = place + status.waiting
        for k in range(run.partitions.size - 1):  # the last one is of all
            unblocked += run.partitions[k].waiting > 0
    begun, idle = np.int64(0), not planned and mode != STRICT
    if not whole and status.plans:
        begun = np.int64(_start_booked(layout, work, run, now))
        place, stop = np.int64(status.head), status.head + status.waiting
    while (place < stop and open_jobs > 0) or status.booked < status.due:
        # Most jobs of a long queue are too wide for what is free, and nothing else is to be done.
        if idle and status.booked == status.due:
            if mode == SKIP or unblocked == 0:
                most = _most_free(run)
                while place < stop and run.widths[place] > most:
                    place += 1
            while place < stop and _is_idle(work, run, mode, run.queue[place], now):
                place += 1
            if place == stop:
                break
        books = status.booked < status.due
        job = np.int64(run.blocked[status.booked] if books else run.queue[place])
        index = status.first + job
        record, part = work.records[index], run.partitions[work.records[index].partition]
        overdue = bounded and is_overdue(run, order, job, now)
        seconds = np.int64(record.limit if bounded else record.order_estimate)
        fits, wants = True, True
        if not books:
            wants = overdue or mode in (CONSERVATIVE, STRICT)
            wants = wants or (mode == EASY and part.blocked != status.stamp)
            fits = may_fit(layout, work, run, index, seconds)
            skipped = run.booked[job] == status.stamp or run.set_closed[record.set] == status.stamp
            if skipped or not (fits or wants) or not within_limits(work, run, index):
                place += 1
                continue
            # Before anything else starts, those before it get their bookings.
            if fits and status.booked < status.blocked:
                status.due = status.blocked
                continue
        time = np.int64(NEVER)
        if fits:
            time = np.int64(find(layout, work, run, index, seconds, now, not books))
        if books:
            status.booked += 1
            if time == NEVER:
                status.fleeting = True
                if not overdue and part.blocked == status.stamp:
                    part.blocked = 0
                    unblocked += 1
            elif mode == STRICT and not overdue:
                open_jobs -= _close(layout, run, np.int64(record.set))
            else:
                book(layout, work, run, index, time, time + seconds)
                # When it starts, others that are booked for then may be over a limit.
                status.fleeting = status.fleeting or (status.plans and is_charged(work, index))
            continue
        if time == now and not within_limits_of_nodes(work, run, index):
            place, status.fleeting = place + 1, True  # on other nodes it may be within them
            continue
        if time == now:
            start(layout, work, run, job, now, seconds if planned else np.int64(record.estimate))
            _note_start(layout, work, run, index, now, seconds, planned)
            take_checked(layout, work, run, index, now, now + seconds)
            head = status.head
            leave(work, run, place)
            place, stop = place + status.head - head, stop + status.head - head - 1
            run.begun[begun], begun, open_jobs = job, begun + 1, open_jobs - (mode == STRICT)
            if order.anew:
                rank(layout, work, run, order, now)
                place = np.int64(status.head)
            continue
        place += 1
        if fits:
            run.too_long[record.form], run.too_long_pass[record.form] = seconds, status.settled
        if not wants:
            continue
        status.last = place - 1 - status.head
        # A booking can wait until another job could start, unless it is not sure that there is one.
        sure = status.down == 0 and record.reservation < 0
        if sure and mode == STRICT and not overdue:
            open_jobs -= _close(layout, run, np.int64(record.set))
            continue
        run.blocked[status.blocked], run.booked[job] = job, status.stamp
        status.blocked += 1
        if mode == EASY and not overdue:
            part.blocked = status.stamp
            unblocked -= 1
        status.due = status.due if sure else status.blocked
    status.begun = begun
    if status.plans:
        status.last = status.waiting - 1
    # From now on what is believed of jobs that run counts.
    for k in range(begun if planned else 0):
        job = np.int64(run.begun[k])
        record = work.records[status.first + job]
        if record.estimate != (record.limit if bounded else record.order_estimate):
            forget(run.expected, run.expected_jobs, status.running, job)
            end = now + record.estimate
            expect(run.expected, run.expected_jobs, status.running - 1, end, job)
    status.holds = not (bounded or status.fleeting) and order.kind == FIXED
    if whole and place == stop:
        narrowest = _WIDEST
        for k in range(status.head, stop):
            narrowest = min(narrowest, run.widths[k])
        status.narrowest = narrowest


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
        at = np.int64(status.head)
        while run.queue[at] != job:
            at += 1
        leave(work, run, at)
    status.holds = False


@njit_inlined
def some_may_start(run: Run) -> bool:
    """Whether any job may start: where the narrowest one does not fit, none does."""
    status = run.status[0]
    return bool(status.waiting > 0 and (status.holds or _most_free(run) >= status.narrowest))


@njit_inlined
def _most_free(run: Run) -> int:
    """Processors that are free in the set of nodes that has most of them."""
    most = run.set_free[0, 0]
    for k in range(1, run.set_free.shape[0]):
        most = max(most, run.set_free[k, 0])
    return int(most)


@njit_inlined
def _begin(run: Run) -> None:
    """Begins a pass over the whole queue, of which nothing is known."""
    status = run.status[0]
    run.stamp[0] += 1
    status.stamp, status.settled = run.stamp[0], run.stamp[0]
    status.checks, status.bookings, status.booked_nodes, status.edges = 0, 0, 0, 0
    status.blocked, status.booked, status.due, status.last = 0, 0, 0, -1
    status.fleeting, status.closes = False, False


@njit_inlined
def _can_go_on(layout: Layout, run: Run, now: int) -> bool:
    """Whether a plan holds, and there is room for all bookings without making it anew."""
    status = run.status[0]
    nodes = status.booked_nodes + status.waiting * layout.units.shape[0]
    room = status.bookings + status.waiting <= run.book_job.size and nodes <= run.book_node.size
    return bool(room and (status.edges == 0 or run.edge_time[0] >= now))


@njit_inlined
def _start_booked(layout: Layout, work: Work, run: Run, now: int) -> int:
    """Starts the jobs that a plan has for now, and returns how many.

    Those that are blocked and not booked will be looked at again.
    """
    status, begun, kept = run.status[0], np.int64(0), np.int64(0)
    forget_checks(run, now)
    while begun < status.edges and run.edge_time[begun] == now:
        booking = run.edge_booking[begun]
        first, last = run.book_first[booking], run.book_first[booking + 1]
        for k in range(first, last):
            run.chosen[k - first], run.chosen_size[k - first] = run.book_node[k], run.book_size[k]
        status.chosen = last - first
        job, place = np.int64(run.book_job[booking]), np.int64(status.head)
        seconds = np.int64(work.records[status.first + job].order_estimate)
        start(layout, work, run, job, now, seconds)
        _note_start(layout, work, run, status.first + job, now, seconds, True)
        while run.queue[place] != job:
            place += 1
        leave(work, run, place)
        run.begun[begun], begun = job, begun + 1
    for edge in range(status.edges if begun > 0 else 0):
        if run.start[run.book_job[run.edge_booking[edge]]] < 0:
            run.edge_time[kept], run.edge_sign[kept] = run.edge_time[edge], run.edge_sign[edge]
            run.edge_booking[kept], kept = run.edge_booking[edge], kept + 1
    status.edges = kept if begun > 0 else status.edges
    for k in range(status.booked, status.blocked):
        run.booked[run.blocked[k]] = 0
    status.blocked, status.due = status.booked, status.booked
    return int(begun)


@njit_inlined
def _is_idle(work: Work, run: Run, mode: int, job: int, now: int) -> bool:
    """Whether a job is too wide now, or at the first booking that it would meet.

    The first blocked job of its partition is known already.
    """
    status, index = run.status[0], run.status[0].first + job
    size, which, partition = work.brief[index]
    wide = size > run.set_free[which, 0]
    if not wide and status.checks > 0 and size > run.check_sets[run.check_row[0], which]:
        wide = now + work.records[index].order_estimate > run.check_time[0]
    passes = mode != EASY or run.partitions[partition].blocked == status.stamp
    return bool(passes and wide)


@njit_inlined
def may_fit(layout: Layout, work: Work, run: Run, index: int, seconds: int) -> bool:
    """Whether a job may fit now: units are free, and none like it was found not to fit."""
    record = work.records[index]
    known = run.too_long_pass[record.form] == run.status[0].settled
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
    run.status[0].closes = True
    run.set_closed[which] = run.status[0].stamp
    for place in range(layout.set_first[which], layout.set_first[which + 1]):
        run.closed[layout.set_nodes[place]] = run.status[0].stamp
    return int(run.set_waiting[which])


@njit_inlined
def _note_start(
    layout: Layout, work: Work, run: Run, index: int, now: int, seconds: int, planned: bool
) -> None:
    """Notes whether a pass holds no longer than the present instant since a job has started.

    Bookings count on its end after so many seconds; a pass made anew would count on its estimate.
    """
    status, estimate = run.status[0], np.int64(work.records[index].estimate)
    agrees = bool(seconds == estimate)
    longest = max(np.int64(seconds), estimate)
    meets = status.checks > 0 and now + longest > run.check_time[0]
    alone = layout.units.shape[0] == 1 and agrees
    if is_charged(work, index) or (meets and not alone) or (planned and not agrees):
        status.fleeting = True


@njit_inlined
def start(layout: Layout, work: Work, run: Run, job: int, now: int, seconds: int) -> None:
    """Starts a job on the chosen nodes; it is expected to run for so many seconds."""
    status, index = run.status[0], run.status[0].first + job
    record, demand, running = work.records[index], work.demand[index], status.running
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
    if not status.counts:
        run.partitions[record.partition].waiting -= 1
        return
    for part in (run.partitions[record.partition], run.partitions[-1]):
        part.waiting, part.running = part.waiting - 1, part.running + 1
        part.queue_log -= record.log
        part.queue_work -= float(record.order_estimate) * demand[0]
        part.run_log += record.log
        part.run_work += float(now + record.estimate) * demand[0]
        part.run_size += demand[0]
