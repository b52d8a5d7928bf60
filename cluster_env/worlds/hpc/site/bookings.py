"""When a job fits, and bookings: nodes that a blocked job is to have from a time on.

What is free on a node only grows with time, but for the beginnings of bookings and of planned
entries of the calendar. So a job fits from a time on if it does then and at each of these
beginnings before its end. Bookings last for one pass over the queue; each beginning of one is a
*check*, a row with what is free then.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_called, njit_inlined
from cluster_env.worlds.hpc.events import NEVER, Episode
from cluster_env.worlds.hpc.site.placing import add_units, can_hold, choose, offer
from cluster_env.worlds.hpc.site_arrays import Ints


@njit_inlined
def is_open(episode: Episode, node: int, reservation: int, time: int, end: int, now: int) -> bool:
    """Whether nothing planned keeps a job away from a node between two times.

    A node that has failed is not counted on, since nobody knows when it comes back.
    """
    site, layout, status = episode.site, episode.site.layout, episode.status[0]
    if site.down[node] > 0 or (time == now and site.room.closed[node] == status.stamp):
        return False
    if site.clear[node] >= end:
        return True
    shift, allowed = status.shift, True
    for place in range(layout.block_first[node], layout.block_first[node + 1]):
        entry = layout.blocks[place]
        if entry != reservation and layout.entry_known[entry] - shift <= now:
            begins, ends = layout.entry_start[entry] - shift, layout.entry_end[entry] - shift
            allowed = allowed and (begins >= end or ends <= time)
    return allowed


@njit_called
def find(episode: Episode, job: int, seconds: int, now: int, at_once: bool) -> int:
    """The earliest time from which a job fits for so many seconds; `NEVER` if none is foreseen.

    Its nodes are written to `chosen`, and what is free at this time to `future`, if that is later
    than now. With `at_once`, only now is looked at.
    """
    site, room, layout = episode.site, episode.site.room, episode.site.layout
    status, record, demand = episode.status[0], episode.jobs[job], episode.demand[job]
    exclusive, size, slots = record.exclusive, np.int64(demand[0]), site.slots
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    inside = layout.in_set[record.set]
    latest = np.int64(NEVER)
    if record.reservation >= 0:
        # It may begin at any time in its reservation, as in Slurm, which kills it at the end.
        latest = layout.entry_end[record.reservation] - status.shift - 1
    # What it can have on a node is what is free there, or has to be worked out.
    plain = not exclusive and demand.size == 1
    time, free, check, not_before = np.int64(now), site.free, np.int64(0), np.int64(now)
    place, edge, block = status.running - 1, np.int64(0), np.int64(0)
    total = site.set_free[record.set, 0]  # at most so much in all can it have
    while time <= latest:
        while check < status.checks and room.check_time[check] < time:
            check += 1
        if total >= size and time >= not_before:
            # It begins after the last of the checks in its time at which its set has too little.
            c = check
            while c < status.checks and room.check_time[c] < time + seconds:
                if room.check_sets[room.check_row[c], record.set] < size:
                    not_before = room.check_time[c] + 1
                c += 1
            if time >= not_before and _has_room(
                episode, free, job, time, time + seconds, check, now
            ):
                return int(time)
        if at_once:
            break
        # From here on the future is looked at, and the sum of what the job can have is kept.
        if time == now:
            free = room.future
            now_free = site.free
            for r in range(now_free.shape[1]):
                for node in range(now_free.shape[0]):
                    free[node, r] = now_free[node, r]
            if not plain:
                total = np.int64(0)
                for k in range(nodes.size):
                    node = nodes[k]
                    if site.down[node] == 0:
                        total += can_hold(demand, exclusive, free[node], layout.units[node])
            while block < layout.block_ends.size and layout.block_ends[block] - status.shift <= now:
                block += 1
        # On to the next time at which something becomes free.
        time = np.int64(NEVER)
        if place >= 0:
            time = max(episode.expected[place], np.int64(now + 1))
        if edge < status.edges:
            time = min(time, room.edge_time[edge])
        if block < layout.block_ends.size:
            time = min(time, layout.block_ends[block] - status.shift)
        if time == NEVER:
            break
        while block < layout.block_ends.size and layout.block_ends[block] - status.shift <= time:
            block += 1
        # What ends, and bookings that begin or end.
        while place >= 0 and max(episode.expected[place], now + 1) <= time:
            other = episode.expected_jobs[place]
            slot, sign = np.int64(site.slot[other]), np.int64(1)
            while slot >= 0:
                held = slots[slot]
                node, units, slot = held.node, held.units, np.int64(held.next)
                total += _change(episode, free, job, plain, inside, node, other, units, sign)
            place -= 1
        while edge < status.edges and room.edge_time[edge] <= time:
            booking, sign = room.edge_booking[edge], np.int64(room.edge_sign[edge])
            other = room.book_job[booking]
            for k in range(room.book_first[booking], room.book_first[booking + 1]):
                node, units = room.book_node[k], room.book_size[k]
                total += _change(episode, free, job, plain, inside, node, other, units, sign)
            edge += 1
    return int(np.int64(NEVER))


@njit_inlined
def _change(
    episode: Episode,
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
    units, demand = episode.site.layout.units[node], episode.demand[job]
    exclusive, whole, more = episode.jobs[job].exclusive, episode.jobs[other].exclusive, np.int64(0)
    counts = inside[node] and episode.site.down[node] == 0
    if plain:  # processors are all that there is
        change = sign * (units[0] if whole else size)
        free[node, 0] += change
        return int(change if counts else more)
    if counts:
        more -= can_hold(demand, exclusive, free[node], units)
    add_units(free[node], units, episode.demand[other], whole, size, sign)
    if counts:
        more += can_hold(demand, exclusive, free[node], units)
    return int(more)


@njit_called
def _has_room(
    episode: Episode, free: Ints, job: int, time: int, end: int, check: int, now: int
) -> bool:
    """Whether a job has room between two times, on nodes that are chosen then.

    ``free`` is what is free at the first one, ``check`` the first check from then on.
    """
    room, layout = episode.site.room, episode.site.layout
    status, record, demand = episode.status[0], episode.jobs[job], episode.demand[job]
    size, exclusive = np.int64(demand[0]), record.exclusive
    nodes = layout.set_nodes[layout.set_first[record.set] : layout.set_first[record.set + 1]]
    all_open = status.down == 0 and layout.blocks.size == 0 and not status.closes
    # Arrays by names of their own: those of an episode are loaded anew where others are written.
    place, can, units = room.place, room.can, layout.units
    total = np.int64(offer(episode, free, job))
    if total >= size and not all_open:
        total, some, status.roomy = np.int64(0), status.roomy, 0
        for k in range(some):
            if is_open(episode, nodes[place[k]], record.reservation, time, end, now):
                place[status.roomy], can[status.roomy] = place[k], can[k]
                total, status.roomy = total + can[k], status.roomy + 1
    while total >= size and check < status.checks and room.check_time[check] < end:
        row, wide = room.check_free[room.check_row[check]], np.int64(0)
        total, check = np.int64(0), check + 1
        for k in range(status.roomy):
            node = nodes[place[k]]
            there = min(can[k], np.int64(can_hold(demand, exclusive, row[node], units[node])))
            place[wide], can[wide] = place[k], there
            total, wide = total + there, wide + (there > 0)
        status.roomy = wide
    if total < size:
        return False
    return bool(status.roomy >= record.least) and choose(episode, free, job)


@njit_called
def take_checked(episode: Episode, job: int, begin: int, end: int) -> None:
    """Takes what a job holds between two times, on its chosen nodes, out of the checks inside."""
    status, room, layout = episode.status[0], episode.site.room, episode.site.layout
    demand, exclusive = episode.demand[job], episode.jobs[job].exclusive
    # By names of their own, as in `_has_room`.
    chosen, chosen_size = room.chosen, room.chosen_size
    node_first, node_sets = layout.node_first, layout.node_sets
    several = room.check_sets.shape[1] > 1  # sets; of one, the sum is changed once
    for check in range(status.checks):
        if begin <= room.check_time[check] < end:
            which = room.check_row[check]
            row, sums, taken = room.check_free[which], room.check_sets[which], np.int64(0)
            for k in range(status.chosen):
                node, size = chosen[k], chosen_size[k]
                before = row[node, 0]
                add_units(row[node], layout.units[node], demand, exclusive, size, -1)
                taken += before - row[node, 0]
                for spot in range(node_first[node], node_first[node + 1] if several else 0):
                    sums[node_sets[spot]] += row[node, 0] - before
            if not several:
                sums[0] -= taken


@njit_inlined
def forget_checks(episode: Episode, now: int) -> None:
    """Leaves out the checks that are over."""
    room = episode.site.room
    status, gone, rows = episode.status[0], np.int64(0), room.check_row
    while gone < status.checks and room.check_time[gone] <= now:
        gone += 1
    for k in range(status.checks - gone if gone > 0 else 0):
        room.check_time[k] = room.check_time[k + gone]
        rows[k], rows[k + gone] = rows[k + gone], rows[k]
    status.checks -= gone


@njit_called
def book(episode: Episode, job: int, begin: int, end: int) -> None:
    """Books the chosen nodes from a time on, or counts that there is no room for a booking."""
    status, room, layout = episode.status[0], episode.site.room, episode.site.layout
    if status.bookings == room.book_job.size:
        room.unbooked[0], status.fleeting = room.unbooked[0] + 1, True
        return
    if status.booked_nodes + status.chosen > room.book_node.size:
        room.unbooked[1], status.fleeting = room.unbooked[1] + 1, True
        return
    # A new check has what is free then.
    check = np.int64(0)
    while check < status.checks and room.check_time[check] < begin:
        check += 1
    if check == status.checks or room.check_time[check] != begin:
        row = np.int64(room.check_row[status.checks])
        for k in range(status.checks, check, -1):
            room.check_time[k], room.check_row[k] = room.check_time[k - 1], room.check_row[k - 1]
        room.check_time[check], room.check_row[check] = begin, row
        then, future, sums = room.check_free[row], room.future, room.check_sets[row]
        for r in range(future.shape[1]):
            for node in range(future.shape[0]):
                then[node, r] = future[node, r]
        for k in range(layout.set_units.shape[0]):
            units = np.int64(0)
            for spot in range(layout.set_first[k], layout.set_first[k + 1]):
                units += future[layout.set_nodes[spot], 0]
            sums[k] = units
        status.checks += 1
    take_checked(episode, job, begin, end)
    # The booking, and where it begins and ends.
    booking, first, chosen = status.bookings, status.booked_nodes, status.chosen
    for k in range(chosen):
        room.book_node[first + k] = room.chosen[k]
        room.book_size[first + k] = room.chosen_size[k]
    status.booked_nodes += chosen
    room.book_job[booking], room.book_first[booking + 1] = job, status.booked_nodes
    status.bookings += 1
    for sign in (-1, 1):
        at, edge = begin if sign < 0 else end, status.edges
        while edge > 0 and room.edge_time[edge - 1] > at:
            room.edge_time[edge] = room.edge_time[edge - 1]
            room.edge_booking[edge] = room.edge_booking[edge - 1]
            room.edge_sign[edge] = room.edge_sign[edge - 1]
            edge -= 1
        room.edge_time[edge], room.edge_booking[edge], room.edge_sign[edge] = at, booking, sign
        status.edges += 1


@njit_inlined
def look_ahead(episode: Episode, entry: int, now: int) -> None:
    """Notes, on the nodes of an entry of the calendar, until when nothing planned begins."""
    layout, shift = episode.site.layout, episode.status[0].shift
    for place in range(layout.entry_first[entry], layout.entry_first[entry + 1]):
        node = layout.entry_nodes[place]
        clear = np.int64(NEVER)
        for k in range(layout.block_first[node], layout.block_first[node + 1]):
            other = layout.blocks[k]
            known = layout.entry_known[other] - shift <= now
            if known and layout.entry_end[other] - shift > now:
                begins = layout.entry_start[other] - shift
                clear = min(clear, begins if begins > now else np.int64(0))
        episode.site.clear[node] = clear
