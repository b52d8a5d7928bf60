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

from cluster_env.core.compiled import njit_called, njit_inlined
from cluster_env.worlds.hpc.events import NEVER, Episode, expect, forget, is_overdue
from cluster_env.worlds.hpc.queue import has_units, note_narrowest, rank
from cluster_env.worlds.hpc.rules import CONSERVATIVE, EASY, FIXED, SKIP, STRICT
from cluster_env.worlds.hpc.running import start
from cluster_env.worlds.hpc.site.bookings import book, find, forget_checks, take_checked
from cluster_env.worlds.hpc.site_arrays import Beginning
from cluster_env.worlds.hpc.site_holding import is_charged


@njit_called
def begin_pass(episode: Episode, bounded: bool, now: int) -> None:
    """Begins a pass, over the whole queue where the last one holds no longer.

    With ``bounded``, some jobs are overdue.
    """
    status, room = episode.status[0], episode.site.room
    status.begun, status.holds = 0, status.holds and not bounded
    if status.holds and episode.order.rule.mode == CONSERVATIVE:
        status.holds = _can_go_on(episode, now)
    if not status.holds:
        room.stamp[0] += 1
        status.stamp, status.settled = room.stamp[0], room.stamp[0]
        status.checks, status.bookings, status.booked_nodes, status.edges = 0, 0, 0, 0
        status.blocked, status.booked, status.due, status.last = 0, 0, 0, -1
        status.fleeting, status.closes = False, False


@njit_called
def start_jobs(episode: Episode, bounded: bool, now: int) -> bool:
    """Starts the jobs that may start now. With ``bounded``, some are overdue.

    Then all goes by what users asked for, since a job that is believed too short would break the
    promise to those that are overdue. It looks at the order anew by itself, and returns False.
    """
    site, room, status = episode.site, episode.site.room, episode.status[0]
    rule, mode = episode.order.rule, episode.order.rule.mode
    plans = mode == CONSERVATIVE
    planned = bounded or plans
    if status.holds and not plans and status.new_jobs == 0:  # nothing has changed
        return False
    # From which place to which; jobs whose sets are not closed; partitions without a blocked job.
    whole, place, open_jobs = not status.holds, status.head + status.new_place, np.int64(1)
    stop, unblocked = place + 1, np.int64(1)
    if whole:
        place, stop, unblocked = np.int64(status.head), status.tail, np.int64(0)
        open_jobs = stop - place
        for k in range(site.partitions.size - 1):  # the last one is of all
            unblocked += site.partitions[k].waiting > 0
    idle = not planned and mode != STRICT
    if not whole and plans:
        _start_booked(episode, now)
        place, stop = np.int64(status.head), status.tail
    while (place < stop and open_jobs > 0) or status.booked < status.due:
        # Most jobs of a long queue are too wide for what is free, and nothing else is to be done.
        if idle and status.booked == status.due:
            every = mode == SKIP or unblocked == 0
            most = np.int64(most_free(episode)) if every else np.int64(NEVER)
            while place < stop and (
                episode.widths[place] > most or _is_idle(episode, mode, episode.queue[place], now)
            ):
                place += 1
            if place == stop:
                break
        books = status.booked < status.due
        job = np.int64(room.blocked[status.booked] if books else episode.queue[place])
        record, part = episode.jobs[job], site.partitions[episode.jobs[job].partition]
        overdue = bounded and is_overdue(episode, job, now)
        seconds = np.int64(record.limit if bounded else record.order_estimate)
        fits, wants = True, True
        if not books:
            wants = overdue or mode in (CONSERVATIVE, STRICT)
            wants = wants or (mode == EASY and part.blocked != status.stamp)
            fits = may_fit(episode, job, seconds)
            closed = room.set_closed[record.set] == status.stamp
            skipped = closed or room.booked[job] == status.stamp
            if skipped or not (fits or wants) or not within_limits(episode, job):
                place += 1
                continue
            # Before anything else starts, those before it get their bookings.
            if fits and status.booked < status.blocked:
                status.due = status.blocked
                continue
        time = np.int64(NEVER)
        if fits:
            time = np.int64(find(episode, job, seconds, now, not books))
        if books:
            status.booked += 1
            if time == NEVER:
                status.fleeting = True
                if not overdue and part.blocked == status.stamp:
                    part.blocked = 0
                    unblocked += 1
            elif mode == STRICT and not overdue:
                open_jobs -= _close(episode, np.int64(record.set))
            else:
                book(episode, job, time, time + seconds)
                # When it starts, others that are booked for then may be over a limit.
                status.fleeting = status.fleeting or (plans and is_charged(episode, job))
            continue
        if time == now and not within_limits_of_nodes(episode, job):
            place, status.fleeting = place + 1, True  # on other nodes it may be within them
            continue
        if time == now:
            head = status.head
            start(episode, place, now, seconds if planned else np.int64(record.estimate))
            _note_start(episode, job, now, seconds, planned)
            take_checked(episode, job, now, now + seconds)
            place, stop = place + status.head - head, stop + status.head - head - 1
            open_jobs -= mode == STRICT
            if episode.order.anew:
                rank(episode, now)
                place = np.int64(status.head)
            continue
        place += 1
        if fits:
            room.too_long[record.form], room.too_long_pass[record.form] = seconds, status.settled
        if not wants:
            continue
        status.last = place - 1 - status.head
        # A booking can wait until another job could start, unless it is not sure that there is one.
        sure = status.down == 0 and record.reservation < 0
        if sure and mode == STRICT and not overdue:
            open_jobs -= _close(episode, np.int64(record.set))
            continue
        room.blocked[status.blocked], room.booked[job] = job, status.stamp
        status.blocked += 1
        if mode == EASY and not overdue:
            part.blocked = status.stamp
            unblocked -= 1
        status.due = status.due if sure else status.blocked
    if plans:
        status.last = status.tail - status.head - 1
    # From now on what is believed of jobs that run counts.
    for k in range(status.begun if planned else 0):
        job = np.int64(episode.begun[k])
        record = episode.jobs[job]
        if record.estimate != (record.limit if bounded else record.order_estimate):
            forget(episode.expected, episode.expected_jobs, status.running, job)
            end = now + record.estimate
            expect(episode.expected, episode.expected_jobs, status.running - 1, end, job)
    status.holds = not (bounded or status.fleeting) and rule.kind == FIXED
    if whole and place == stop:
        note_narrowest(episode)
    return False


@njit_called
def bring_to(episode: Episode, beginning: Beginning, now: int) -> None:
    """Lets the first jobs run as they do at a moment; see `Beginning`."""
    status, room = episode.status[0], episode.site.room
    for job in range(beginning.first.size - 1):
        begin, end = beginning.first[job], beginning.first[job + 1]
        status.chosen = end - begin
        for place in range(begin, end):
            room.chosen[place - begin] = beginning.node[place]
            room.chosen_size[place - begin] = beginning.size[place]
        at = np.int64(status.head)
        while episode.queue[at] != job:
            at += 1
        start(episode, at, now, np.int64(episode.jobs[job].estimate))
    status.holds = False


@njit_inlined
def most_free(episode: Episode) -> int:
    """Processors that are free in the set of nodes that has most of them."""
    free = episode.site.set_free
    most = free[0, 0]
    for k in range(1, free.shape[0]):
        most = max(most, free[k, 0])
    return int(most)


@njit_inlined
def _can_go_on(episode: Episode, now: int) -> bool:
    """Whether a plan holds, and there is room for all bookings without making it anew."""
    status, room = episode.status[0], episode.site.room
    waiting = status.tail - status.head
    nodes = status.booked_nodes + waiting * episode.site.layout.units.shape[0]
    fits = status.bookings + waiting <= room.book_job.size and nodes <= room.book_node.size
    return bool(fits and (status.edges == 0 or room.edge_time[0] >= now))


@njit_called
def _start_booked(episode: Episode, now: int) -> None:
    """Starts the jobs that a plan has for now.

    Those that are blocked and not booked will be looked at again.
    """
    room = episode.site.room
    status, begun, kept = episode.status[0], np.int64(0), np.int64(0)
    forget_checks(episode, now)
    while begun < status.edges and room.edge_time[begun] == now:
        booking = room.edge_booking[begun]
        first, last = room.book_first[booking], room.book_first[booking + 1]
        status.chosen = last - first
        for k in range(status.chosen):
            room.chosen[k], room.chosen_size[k] = (
                room.book_node[first + k],
                room.book_size[first + k],
            )
        job, place = np.int64(room.book_job[booking]), np.int64(status.head)
        seconds = np.int64(episode.jobs[job].order_estimate)
        while episode.queue[place] != job:
            place += 1
        start(episode, place, now, seconds)
        _note_start(episode, job, now, seconds, True)
        begun += 1
    for edge in range(status.edges if begun > 0 else 0):
        if episode.start[room.book_job[room.edge_booking[edge]]] < 0:
            room.edge_time[kept], room.edge_sign[kept] = room.edge_time[edge], room.edge_sign[edge]
            room.edge_booking[kept], kept = room.edge_booking[edge], kept + 1
    status.edges = kept if begun > 0 else status.edges
    for k in range(status.booked, status.blocked):
        room.booked[room.blocked[k]] = 0
    status.blocked, status.due = status.booked, status.booked


@njit_inlined
def _is_idle(episode: Episode, mode: int, job: int, now: int) -> bool:
    """Whether a job is too wide now, or at the first booking that it would meet.

    The first blocked job of its partition is known already.
    """
    site, room, work = episode.site, episode.site.room, episode.site.work
    status = episode.status[0]
    size, which, partition = work.brief[job]
    wide = size > site.set_free[which, 0]
    if not wide and status.checks > 0 and size > room.check_sets[room.check_row[0], which]:
        wide = now + episode.jobs[job].order_estimate > room.check_time[0]
    passes = mode != EASY or site.partitions[partition].blocked == status.stamp
    return bool(passes and wide)


@njit_inlined
def may_fit(episode: Episode, job: int, seconds: int) -> bool:
    """Whether a job may fit now: units are free, and none like it was found not to fit."""
    record, room = episode.jobs[job], episode.site.room
    known = room.too_long_pass[record.form] == episode.status[0].settled
    fits = not (known and room.too_long[record.form] <= seconds)
    return bool(fits and has_units(episode, job))


@njit_inlined
def within_limits(episode: Episode, job: int) -> bool:
    """Whether no counter blocks a job, but for those of nodes."""
    work, within = episode.site.work, True
    for place in range(work.charge_first[job], work.charge_first[job + 1]):
        counter = work.charge_counter[place]
        after = episode.site.used[counter] + work.charge_amount[place]
        if work.charge_checked[place] and work.counter_row[counter] < 0:
            within = within and after <= work.counter_limit[counter]
    return bool(within)


@njit_inlined
def within_limits_of_nodes(episode: Episode, job: int) -> bool:
    """Whether no counter of nodes blocks a job on its chosen nodes."""
    site, work, within = episode.site, episode.site.work, True
    for place in range(work.charge_first[job], work.charge_first[job + 1]):
        counter = work.charge_counter[place]
        row, after = work.counter_row[counter], site.used[counter]
        if row >= 0 and work.charge_checked[place]:
            for k in range(episode.status[0].chosen):
                after += site.held[row, episode.site.room.chosen[k]] == 0
            within = within and after <= work.counter_limit[counter]
    return bool(within)


@njit_inlined
def _close(episode: Episode, which: int) -> int:
    """Closes the nodes of a set for all jobs behind; returns how many jobs of it wait."""
    room, layout = episode.site.room, episode.site.layout
    episode.status[0].closes = True
    room.set_closed[which] = episode.status[0].stamp
    for place in range(layout.set_first[which], layout.set_first[which + 1]):
        room.closed[layout.set_nodes[place]] = episode.status[0].stamp
    return int(episode.site.set_waiting[which])


@njit_inlined
def _note_start(episode: Episode, job: int, now: int, seconds: int, planned: bool) -> None:
    """Notes whether a pass holds no longer than the present instant since a job has started.

    Bookings count on its end after so many seconds; a pass made anew would count on its estimate.
    """
    status, estimate = episode.status[0], np.int64(episode.jobs[job].estimate)
    agrees = bool(seconds == estimate)
    longest = max(np.int64(seconds), estimate)
    meets = status.checks > 0 and now + longest > episode.site.room.check_time[0]
    alone = episode.site.layout.units.shape[0] == 1 and agrees
    if is_charged(episode, job) or (meets and not alone) or (planned and not agrees):
        status.fleeting = True
