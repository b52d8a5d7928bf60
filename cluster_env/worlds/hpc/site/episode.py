"""Episodes at a site, decision by decision: their arrays, and the views of one of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.hpc.events import Episode, Jobs, Machine
from cluster_env.worlds.hpc.site.arrays import Layout, Results, Run, Site, SiteRows, Work, run_of
from cluster_env.worlds.hpc.site.queue import Order


class SiteBatch(NamedTuple):
    """The episodes of a batch, decision by decision; `Rows` is that of one pool."""

    site: Site
    results: Results
    rows: SiteRows
    order: Order  # in which policies see the queue
    status: Any  # (num_rows,), that of the results
    states: NDArray[np.int32]  # (num_rows, state_size)
    free: NDArray[np.int64]  # (num_rows, num_resources), of all nodes that are there
    spare: NDArray[np.int64]  # (num_rows, num_resources)


class SiteEpisode(NamedTuple):
    """What an `Episode` at a site has beside what any episode has."""

    layout: Layout
    work: Work
    run: Run
    order: Order
    jobs: Any  # (num_jobs,), those of the episode


@njit_inlined
def episode_of(machine: Machine, jobs: Jobs, batch: SiteBatch, row: int) -> Episode:
    """The views of the episode of a row."""
    site, status = batch.site, batch.status[row]
    run = run_of(site, batch.results, row, batch.rows, row, status.place)
    first, last = jobs.first[status.jobset], jobs.first[status.jobset + 1]
    none = run.queue[:0]
    own = SiteEpisode(site.layout, site.work, run, batch.order, jobs.records[first:last])
    return Episode(
        jobs.records[first:last],
        jobs.demand[first:last],
        run.start,
        run.at_arrival,
        run.queue,
        none,
        run.keys,
        none,
        none,
        run.ends,
        run.running,
        run.expected,
        run.expected_jobs,
        machine.capacity,
        batch.free[row],
        batch.spare[row],
        run.usage,
        run.status,
        run.partitions[-1:],
        own,
    )
