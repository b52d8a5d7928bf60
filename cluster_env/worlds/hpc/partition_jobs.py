"""Generated jobs for a described site: a stream for each of its partitions."""

from dataclasses import replace
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.sites.description import Site
from cluster_env.sites.requests import Requests


def jobs_of_partitions(workload: Any, site: Site, rng: np.random.Generator) -> JobSet:
    """Draws the jobs of all partitions of a site, in the order of their arrivals.

    Each partition has a stream of its own as if it were a machine by itself, at such loads that all
    together have that of the workload on the whole machine. Run times and estimates are cut at the
    longest time of the partition; jobs that may never run are left out.

    Args:
        workload: draws the jobs of a machine, and has the fields ``jobs``, ``load`` and
            ``processors``.
        site: with two partitions or more.
        rng: the same state gives the same jobs.

    Raises:
        InputError: if none of the jobs may run at the site.
    """
    sizes = [
        int(site.units[np.asarray(site.node_set(place)), 0].sum())
        for place in range(len(site.partitions))
    ]
    share = int(site.units[:, 0].sum()) / sum(sizes)
    streams = []
    for place, (partition, most) in enumerate(zip(site.partitions, sizes, strict=True)):
        alone = replace(workload, processors=max(most, 4), load=workload.load * share)
        drawn = alone.sample(rng)
        longest = partition.max_time_s or np.iinfo(np.int32).max
        run = np.minimum(drawn.duration, longest)
        estimate = np.minimum(drawn.attributes["estimate"], longest)
        size = np.minimum(drawn.demand[:, 0], most)
        streams.append(np.stack([drawn.arrival, run, size, estimate, np.full_like(run, place)]))
    arrival, run, size, estimate, place = np.concatenate(streams, axis=1)
    order = np.argsort(arrival, kind="stable")
    jobset = JobSet.of(
        arrival[order],
        run[order],
        size[order, None],
        attributes={"estimate": estimate[order], "partition": place[order]},
    )
    can = np.ones(jobset.num_jobs, np.bool_)
    for never, _ in Requests.of(site, jobset).impossible():
        can &= ~never
    if not can.any():
        raise InputError("none of the generated jobs may run at the site that is described")
    chosen = jobset.select(np.flatnonzero(can)[: workload.jobs])
    return replace(chosen, arrival=chosen.arrival - chosen.arrival[0])
