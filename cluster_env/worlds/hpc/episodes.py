"""Episodes side by side, and the views of one of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_either, njit_inlined
from cluster_env.worlds.hpc.events import AT_ARRIVAL, Episode, Machine
from cluster_env.worlds.hpc.jobs import Jobs, Records
from cluster_env.worlds.hpc.orders import Order
from cluster_env.worlds.hpc.plan import Plan
from cluster_env.worlds.hpc.rules import of_jobs
from cluster_env.worlds.hpc.run_times import KNOWN, NUM_GROUPS
from cluster_env.worlds.hpc.site_arrays import SiteRows, Work


class Rows(NamedTuple):
    """The episodes of a batch; what belongs to jobs stands one episode after the other."""

    start: NDArray[np.int64]  # (num_places,), see `Episode`, as all up to `expected_jobs`
    at_arrival: NDArray[np.int32]  # (num_places, 4), or of no place
    queue: NDArray[np.int32]
    widths: NDArray[np.int32]
    keys: NDArray[np.float64]
    next_alike: NDArray[np.int32]  # of no place where each waiting job stands in the queue
    last_alike: NDArray[np.int32]
    ends: NDArray[np.int64]
    running: NDArray[np.int32]
    expected: NDArray[np.int64]
    expected_jobs: NDArray[np.int32]
    free: NDArray[np.int64]  # (num_rows, num_resources)
    spare: NDArray[np.int64]  # (num_rows, num_resources)
    usage: NDArray[np.float64]  # (num_rows, users), as many as the jobset with the most has
    known: NDArray[np.float64]  # (num_places, NUM_GROUPS, len(KNOWN)), or of no place
    begun: NDArray[np.int32]  # of no place where nobody asks
    status: Records  # (num_rows,), see `STATUS`
    states: NDArray[np.int32]  # (num_rows, state_size)
    order: Any  # `Order`, or None where nothing is played
    plan: Any  # `Plan`, or None at a site
    site: Any  # None in a pool, else `SiteRows`

    @classmethod
    def of(
        cls,
        status: Records,
        num_places: int,
        num_resources: int,
        users: int,
        state_size: int = 0,
        *,
        seen: bool = False,
        passes: bool = True,
        lines_up: bool = False,
        learns: bool = False,
        order: Order | None = None,
        plan: Plan | None = None,
        site: SiteRows | None = None,
    ) -> "Rows":
        """Episodes of some records, ``(num_rows,)``, with so many places for jobs.

        There are as many users as in the jobset with the most. States show what was true when
        jobs arrived if that is `seen`. Where there are `passes` over the queue, it is noted whom
        they start; with `lines_up` jobs that are alike wait behind each other. What is known of
        groups of jobs is kept where anybody `learns` run times.
        """
        num_rows, num_lines = status.size, num_places if lines_up else 0
        of_groups = (num_places if learns else 0, NUM_GROUPS, len(KNOWN))
        return cls(
            start=np.full(num_places, -1, np.int64),
            at_arrival=np.zeros((num_places if seen else 0, len(AT_ARRIVAL)), np.int32),
            queue=np.zeros(num_places, np.int32),
            widths=np.zeros(num_places, np.int32),
            keys=np.zeros(num_places, np.float64),
            next_alike=np.zeros(num_lines, np.int32),
            last_alike=np.zeros(num_lines, np.int32),
            ends=np.zeros(num_places, np.int64),
            running=np.zeros(num_places, np.int32),
            expected=np.zeros(num_places, np.int64),
            expected_jobs=np.zeros(num_places, np.int32),
            free=np.zeros((num_rows, num_resources), np.int64),
            spare=np.zeros((num_rows, num_resources), np.int64),
            usage=np.zeros((num_rows, users), np.float64),
            known=np.zeros(of_groups, np.float64),
            begun=np.zeros(num_places if passes else 0, np.int32),
            status=status,
            states=np.zeros((num_rows, state_size), np.int32),
            order=order,
            plan=plan,
            site=site,
        )


@njit_inlined
def _beside_in_pool(
    rows: Rows, row: int, scratch: Rows, place: int, first: int, size: int
) -> tuple[Records, None]:
    """The sums over all jobs, and what an episode has at a site alone.

    ``first`` is its first job among all; a tuple, since no array may be returned by itself.
    """
    return rows.status[row : row + 1], None


@njit_inlined
def _beside_at_site(
    rows: Rows, row: int, scratch: Rows, place: int, first: int, size: int
) -> tuple[Records, SiteRows]:
    # What becomes of jobs stands in the row, all else in the place where it is played.
    theirs, mine, work = rows.site, scratch.site, scratch.site.work
    own, begin = rows.status[row].place, scratch.status[place].place
    stop, end, last = own + size, begin + size, first + size
    site = SiteRows(
        theirs.finish[own:stop],
        theirs.eligible[own:stop],
        theirs.cuts[own:stop],
        theirs.lost[own:stop],
        mine.later[begin:end],
        mine.later_jobs[begin:end],
        mine.pending[begin:end],
        mine.ready[begin:end],
        mine.slot[begin:end],
        mine.partitions[place],
        mine.used[place],
        mine.held[place],
        mine.free[place],
        mine.down[place],
        mine.clear[place],
        mine.set_free[place],
        mine.set_waiting[place],
        mine.slots[place],
        mine.layout,
        Work(
            work.brief[first:last],
            work.charge_first[first : last + 1],
            work.charge_counter,
            work.charge_amount,
            work.charge_checked,
            work.counter_limit,
            work.counter_row,
            work.next_first[first : last + 1],
            work.next_jobs,
        ),
        mine.room,
        mine.cut,
    )
    return site.partitions[-1:], site


_beside = njit_either(_beside_in_pool, _beside_at_site, "site")


@njit_inlined
def episode_of(
    machine: Machine, jobs: Jobs, rows: Rows, row: int, scratch: Rows, place: int
) -> Episode:
    """The views of one episode, whose status and starts are in a row of all episodes.

    It is played in a place of ``scratch``, the same rows or others.
    """
    own, begin, order = rows.status[row], scratch.status[place].place, scratch.order
    first, start = jobs.first[own.jobset], own.place
    size = jobs.first[own.jobset + 1] - first
    last, end = first + size, begin + size
    sums, site = _beside(rows, row, scratch, place, first, size)
    return Episode(
        jobs.records[first:last],
        jobs.demand[first:last],
        rows.start[start : start + size],
        scratch.at_arrival[begin:end],
        scratch.queue[begin:end],
        scratch.widths[begin:end],
        scratch.keys[begin:end],
        scratch.next_alike[begin:end],
        scratch.last_alike[begin:end],
        scratch.ends[begin:end],
        scratch.running[begin:end],
        scratch.expected[begin:end],
        scratch.expected_jobs[begin:end],
        machine.capacity,
        scratch.free[place],
        scratch.spare[place],
        scratch.usage[place],
        jobs.groups[first:last],
        scratch.known[begin:end],
        scratch.begun[begin:end],
        rows.status[row : row + 1],
        sums,
        Order(
            of_jobs(order.rule, first, last),
            order.bonus[first:last],
            order.scoring,
            order.anew,
            order.shares,
            order.counts,
            order.tracks,
        ),
        scratch.plan,
        site,
    )


@njit_inlined
def copy_of(machine: Machine, jobs: Jobs, rows: Rows, row: int, scratch: Rows) -> Episode:
    """An episode in which the present instant of a row is to be played again.

    It is the one row of ``scratch``, and has the record of the other, but is not filled yet.
    """
    scratch.status[0] = rows.status[row]
    scratch.status[0].place = 0
    return episode_of(machine, jobs, scratch, 0, scratch, 0)
