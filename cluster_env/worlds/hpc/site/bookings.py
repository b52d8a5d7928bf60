"""When a job fits, and bookings: nodes that a blocked job is to have from a time on.

What is free on a node only grows with time, but for the beginnings of bookings and of planned
entries of the calendar. So a job fits from a time on if it does then and at each of these
beginnings before its end. Bookings last for one pass over the queue; each beginning of one is a
*check*, a row with what is free then.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import NEVER
from cluster_env.worlds.hpc.site.arrays import Ints, Layout, Run, Work
from cluster_env.worlds.hpc.site.placing import add_units, can_hold, choose, lower


@njit_inlined
def is_open(
    layout: Layout, run: Run, node: int, reservation: int, time: int, end: int, now: int
) -> bool:
    """Whether nothing planned keeps a job away from a node between two times.

    A node that has failed is not counted on, since nobody knows when it comes back.
    """
    if run.down[node] > 0 or (time == now and run.closed[node] == run.status[0].stamp):
        return False
    if run.clear[node] >= end:
        return True
    shift, allowed = run.status[0].shift, True
    for place in range(layout.block_first[node], layout.block_first[node + 1]):
        entry = layout.blocks[place]
        if entry != reservation and layout.entry_known[entry] - shift <= now:
            begins, ends = layout.entry_start[entry] - shift, layout.entry_end[entry] - shift
            allowed = allowed and (begins >= end or ends <= time)
    return allowed


@njit_inlined
def find(
    layout: Layout, work: Work, run: Run, job: int, seconds: int, now: int, at_once: bool
) -> int:
    """The earliest time from which a job fits for so many seconds; `NEVER` if none is foreseen.

    Its nodes are written to `chosen`, and what is free at this time to `future`, if that is later
    than now. With `at_once`, only now is looked at.
    """
    status, record, first = run.status[0], work.records[job], run.status[0].first
    demand, exclusive, size = work.demand[job], record.exclusive, np.int64(work.demand[job, 0])
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    inside = layout.in_set[record.set]
    latest = np.int64(NEVER)
    if record.reservation >= 0:
        # It may begin at any time in its reservation, as in Slurm, which kills it at the end.
        latest = layout.entry_end[record.reservation] - status.shift - 1
    # What it can have on a node is what is free there, or has to be worked out.
    plain = not exclusive and demand.size == 1
    time, free, check, not_before = np.int64(now), run.free, np.int64(0), np.int64(now)
    place, edge, block = status.running - 1, np.int64(0), np.int64(0)
    total = run.set_free[record.set, 0]  # at most so much in all can it have
    while time <= latest:
        while check < status.checks and run.check_time[check] < time:
            check += 1
        if total >= size and time >= not_before:
            # It begins after the last of the checks in its time at which its set has too little.
            c = check
            while c < status.checks and run.check_time[c] < time + seconds:
                if run.check_sets[run.check_row[c], record.set] < size:
                    not_before = run.check_time[c] + 1
                c += 1
            if time >= not_before and _has_room(
                layout, work, run, free, job, time, time + seconds, check, now
            ):
                return int(time)
        if at_once:
            break
        # From here on the future is looked at, and the sum of what the job can have is kept.
        if time == now:
            free = run.future
            for r in range(layout.units.shape[1]):
                for node in range(layout.units.shape[0]):
                    free[node, r] = run.free[node, r]
            if not plain:
                for k in range(nodes.size):
                    run.can[k] = size if run.down[nodes[k]] == 0 else 0
                total = np.int64(lower(layout, run.can, nodes, demand, exclusive, free))
            while block < layout.block_ends.size and layout.block_ends[block] - status.shift <= now:
                block += 1
        # On to the next time at which something becomes free.
        time = np.int64(NEVER)
        if place >= 0:
            time = max(run.expected[place], np.int64(now + 1))
        if edge < status.edges:
            time = min(time, run.edge_time[edge])
        if block < layout.block_ends.size:
            time = min(time, layout.block_ends[block] - status.shift)
        if time == NEVER:
            break
        while block < layout.block_ends.size and layout.block_ends[block] - status.shift <= time:
            block += 1
        # What ends, and bookings that begin or end.
        while place >= 0 and max(run.expected[place], now + 1) <= time:
            by = run.expected_jobs[place]
            other, slot = first + by, run.slot[by]
            while slot >= 0:
                total += _change(
                    layout,
                    work,
                    run,
                    free,
                    job,
                    plain,
                    inside,
                    run.slot_node[slot],
                    other,
                    run.slot_size[slot],
                    np.int64(1),
                )
                slot = run.slot_next[slot]
            place -= 1
        while edge < status.edges and run.edge_time[edge] <= time:
            booking, sign = run.edge_booking[edge], np.int64(run.edge_sign[edge])
            other = first + run.book_job[booking]
            for k in range(run.book_first[booking], run.book_first[booking + 1]):
                total += _change(
                    layout,
                    work,
                    run,
                    free,
                    job,
                    plain,
                    inside,
                    run.book_node[k],
                    other,
                    run.book_size[k],
                    sign,
                )
            edge += 1
    return int(np.int64(NEVER))


@njit_inlined
def _change(
    layout: Layout,
    work: Work,
    run: Run,
    free: Ints,
    job: int,
    plain: bool,
    inside: NDArray[np.bool_],
    node: int,
    other: int,
    size: int,
    sign: int,
) -> int:
    """Gives back (sign 1) or takes (-1) what another job has on a node.

    Returns how much more a job can have there; 0 on a node outside its set, or that has failed.
    """
    units, demand = layout.units[node], work.demand[job]
    exclusive, more, before = work.records[job].exclusive, np.int64(0), free[node, 0]
    counts = inside[node] and run.down[node] == 0
    if counts and not plain:
        more -= can_hold(demand, exclusive, free[node], units)
    add_units(free[node], units, work.demand[other], work.records[other].exclusive, size, sign)
    if counts and plain:
        more += free[node, 0] - before
    elif counts:
        more += can_hold(demand, exclusive, free[node], units)
    return int(more)


@njit_inlined
def _has_room(
    layout: Layout,
    work: Work,
    run: Run,
    free: Ints,
    job: int,
    time: int,
    end: int,
    check: int,
    now: int,
) -> bool:
    """Whether a job has room between two times, on nodes that are chosen then.

    ``free`` is what is free at the first one, ``check`` the first check from then on.
    """
    status, record, demand = run.status[0], work.records[job], work.demand[job]
    size, wide, exclusive = np.int64(demand[0]), np.int64(0), record.exclusive
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    all_open = status.down == 0 and layout.blocks.size == 0 and not status.closes
    for k in range(nodes.size):
        run.can[k] = size
    if not all_open:
        for k in range(nodes.size):
            if not is_open(layout, run, nodes[k], record.reservation, time, end, now):
                run.can[k] = 0
    total = np.int64(lower(layout, run.can, nodes, demand, exclusive, free))
    # On most nodes it can have nothing; the others are looked at for each check.
    for k in range(nodes.size if total >= size else 0):
        run.offers[wide] = k
        wide += run.can[k] > 0
    while total >= size and check < status.checks and run.check_time[check] < end:
        row, some = run.check_free[run.check_row[check]], wide
        total, wide, check = np.int64(0), np.int64(0), check + 1
        for i in range(some):
            k = run.offers[i]
            there = can_hold(demand, exclusive, row[nodes[k]], layout.units[nodes[k]])
            run.can[k] = min(run.can[k], np.int64(there))
            total += run.can[k]
            run.offers[wide] = k
            wide += run.can[k] > 0
    if total < size:
        return False
    return bool(wide >= record.least) and choose(layout, work, run, free, job)


@njit_inlined
def take_checked(layout: Layout, work: Work, run: Run, job: int, begin: int, end: int) -> None:
    """Takes what a job holds between two times, on its chosen nodes, out of the checks inside."""
    status = run.status[0]
    for check in range(status.checks):
        if begin <= run.check_time[check] < end:
            row, sums = run.check_free[run.check_row[check]], run.check_sets[run.check_row[check]]
            for k in range(status.chosen):
                node = run.chosen[k]
                before = row[node, 0]
                add_units(
                    row[node],
                    layout.units[node],
                    work.demand[job],
                    work.records[job].exclusive,
                    run.chosen_size[k],
                    -1,
                )
                for spot in range(layout.node_first[node], layout.node_first[node + 1]):
                    sums[layout.node_sets[spot]] += row[node, 0] - before


@njit_inlined
def forget_checks(run: Run, now: int) -> None:
    """Leaves out the checks that are over."""
    status, gone, rows = run.status[0], np.int64(0), run.check_row
    while gone < status.checks and run.check_time[gone] <= now:
        gone += 1
    for k in range(status.checks - gone if gone > 0 else 0):
        run.check_time[k] = run.check_time[k + gone]
        rows[k], rows[k + gone] = rows[k + gone], rows[k]
    status.checks -= gone


@njit_inlined
def book(layout: Layout, work: Work, run: Run, job: int, begin: int, end: int) -> None:
    """Books the chosen nodes from a time on that `find` has found; counts where there is no room.

    ``job`` is counted among all.
    """
    status = run.status[0]
    if status.bookings == run.book_job.size:
        run.unbooked[0], status.fleeting = run.unbooked[0] + 1, True
        return
    if status.booked_nodes + status.chosen > run.book_node.size:
        run.unbooked[1], status.fleeting = run.unbooked[1] + 1, True
        return
    # A new check has what is free then.
    check = np.int64(0)
    while check < status.checks and run.check_time[check] < begin:
        check += 1
    if check == status.checks or run.check_time[check] != begin:
        row = np.int64(run.check_row[status.checks])
        for k in range(status.checks, check, -1):
            run.check_time[k], run.check_row[k] = run.check_time[k - 1], run.check_row[k - 1]
        run.check_time[check], run.check_row[check] = begin, row
        for node in range(layout.units.shape[0]):
            for r in range(layout.units.shape[1]):
                run.check_free[row, node, r] = run.future[node, r]
        for k in range(layout.set_units.shape[0]):
            run.check_sets[row, k] = 0
            for spot in range(layout.set_first[k], layout.set_first[k + 1]):
                run.check_sets[row, k] += run.future[layout.set_nodes[spot], 0]
        status.checks += 1
    take_checked(layout, work, run, job, begin, end)
    # The booking, and where it begins and ends.
    booking = status.bookings
    for k in range(status.chosen):
        run.book_node[status.booked_nodes + k] = run.chosen[k]
        run.book_size[status.booked_nodes + k] = run.chosen_size[k]
    status.booked_nodes += status.chosen
    run.book_job[booking], run.book_first[booking + 1] = job - status.first, status.booked_nodes
    status.bookings += 1
    for sign in (-1, 1):
        at, edge = begin if sign < 0 else end, status.edges
        while edge > 0 and run.edge_time[edge - 1] > at:
            run.edge_time[edge] = run.edge_time[edge - 1]
            run.edge_booking[edge] = run.edge_booking[edge - 1]
            run.edge_sign[edge] = run.edge_sign[edge - 1]
            edge -= 1
        run.edge_time[edge], run.edge_booking[edge], run.edge_sign[edge] = at, booking, sign
        status.edges += 1


@njit_inlined
def look_ahead(layout: Layout, run: Run, entry: int, now: int) -> None:
    """Notes, on the nodes of an entry of the calendar, until when nothing planned begins."""
    shift = run.status[0].shift
    for place in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
        node = layout.entry_nodes[place]
        clear = np.int64(NEVER)
        for k in range(layout.block_first[node], layout.block_first[node + 1]):
            other = layout.blocks[k]
            known = layout.entry_known[other] - shift <= now
            if known and layout.entry_end[other] - shift > now:
                begins = layout.entry_start[other] - shift
                clear = min(clear, begins if begins > now else np.int64(0))
        run.clear[node] = clear
