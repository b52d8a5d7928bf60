"""Episodes of one pool side by side."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import new_records, njit_inlined
from cluster_env.worlds.hpc.events import AT_ARRIVAL, STATUS, Episode, Jobs, Machine, Records
from cluster_env.worlds.hpc.state import StateLayout


class Rows(NamedTuple):
    """The episodes of a batch; what belongs to jobs stands one episode after the other."""

    start: NDArray[np.int64]  # (num_places,), see `Episode`, as all up to `expected_jobs`
    at_arrival: NDArray[np.int32]  # (num_places, 4), or of no place
    queue: NDArray[np.int32]
    widths: NDArray[np.int32]
    keys: NDArray[np.float64]  # of no place where no rule keeps its own order
    next_alike: NDArray[np.int32]  # of no place where each waiting job stands in the queue
    last_alike: NDArray[np.int32]
    ends: NDArray[np.int64]
    running: NDArray[np.int32]
    expected: NDArray[np.int64]
    expected_jobs: NDArray[np.int32]
    free: NDArray[np.int64]  # (num_rows, num_resources)
    spare: NDArray[np.int64]  # (num_rows, num_resources)
    usage: NDArray[np.float64]  # (num_rows, users), as many as the jobset with the most has
    status: Records  # (num_rows,), of `STATUS`
    states: NDArray[np.int32]  # (num_rows, state_size)
    site: None  # nothing beside; see `cluster_env.worlds.hpc.site.episode.SiteBatch`

    @classmethod
    def of(
        cls,
        jobset: NDArray[np.integer],
        place: NDArray[np.int64],
        num_places: int,
        num_resources: int,
        users: int,
        layout: StateLayout | None = None,
        lines_up: bool = False,
    ) -> "Rows":
        """Episodes without a beginning, of a jobset and a place each, ``(num_rows,)``.

        There are as many users as in the jobset with the most. Without a layout episodes have no
        states, but a rule's own order; with `lines_up` jobs that are alike wait behind each other.
        """
        num_rows, num_ranked = jobset.size, num_places if layout is None else 0
        num_lines = num_places if lines_up else 0
        seen = num_places if layout is not None and layout.horizon else 0

        status = new_records(num_rows, STATUS)
        status.jobset, status.place = jobset, place
        return cls(
            start=np.full(num_places, -1, np.int64),
            at_arrival=np.zeros((seen, len(AT_ARRIVAL)), np.int32),
            queue=np.zeros(num_places, np.int32),
            widths=np.zeros(num_places, np.int32),
            keys=np.zeros(num_ranked, np.float64),
            next_alike=np.zeros(num_lines, np.int32),
            last_alike=np.zeros(num_lines, np.int32),
            ends=np.zeros(num_places, np.int64),
            running=np.zeros(num_places, np.int32),
            expected=np.zeros(num_places, np.int64),
            expected_jobs=np.zeros(num_places, np.int32),
            free=np.zeros((num_rows, num_resources), np.int64),
            spare=np.zeros((num_rows, num_resources), np.int64),
            usage=np.zeros((num_rows, users), np.float64),
            status=status,
            states=np.zeros((num_rows, 0 if layout is None else layout.size), np.int32),
            site=None,
        )


@njit_inlined
def episode_of(
    machine: Machine, jobs: Jobs, rows: Rows, row: int, scratch: Rows, place: int
) -> Episode:
    """The views of one episode, whose jobset and starts are in a row of all episodes.

    It is played in a place of ``scratch``, the same rows or others.
    """
    own, begin = rows.status[row], scratch.status[place].place
    first, start = jobs.first[own.jobset], own.place
    size = jobs.first[own.jobset + 1] - first
    last, end = first + size, begin + size
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
        scratch.status[place : place + 1],
        scratch.status[place : place + 1],
        None,
    )
