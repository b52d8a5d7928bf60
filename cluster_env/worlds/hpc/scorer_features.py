"""Features of a scorer by themselves, for programs that have its weights alone."""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.hpc import site_arrays as at_site
from cluster_env.worlds.hpc import state as header
from cluster_env.worlds.hpc.features import FITS
from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION
from cluster_env.worlds.hpc.world import HPC


def scorer_features(
    world: HPC, states: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features of the jobs that states show, and of the states, each with a 1 behind.

    Simulators compute scores without them, see `cluster_env.worlds.hpc.scoring.weigh`.

    Returns:
        Float32 ``(n, queue, SIZE)`` in the order of `scorer.JOB_FEATURES`, 0 in empty places, and
        float32 ``(n, SIZE)`` in that of `scorer.STATE_FEATURES`.

    Raises:
        InputError: if the states are not of this `HPC`.
    """
    fits = world.features(states).items[:, :, FITS]
    head = states[:, : world.layout.jobs_at, None].astype(np.float64).swapaxes(0, 1)
    deviation, area_deviation = (
        np.maximum(head[place] / 1000.0, LEAST_DEVIATION)
        for place in (header.RECENT_LOG_DEVIATION, header.RECENT_LOG_AREA_DEVIATION)
    )
    jobs = world.layout.jobs(states).astype(np.float64)
    present = jobs[:, :, header.ESTIMATE] > 0
    estimate = np.where(present, jobs[:, :, header.ESTIMATE], 1.0)
    size = np.where(present, jobs[:, :, header.DEMAND], 1.0)
    free, processors = head[header.FREE], np.full_like(size, world.processors)
    if world.layout.site:  # a job's partition is its machine
        own = jobs[:, :, header.DEMAND + world.layout.num_resources :]
        free = own[:, :, at_site.PARTITION_FREE]
        processors = np.where(present, own[:, :, at_site.PARTITION_PROCESSORS], world.processors)
    log, log_size, log_processors = np.log(estimate), np.log(size), np.log(processors)
    of_jobs = (
        log / 4.0,
        (log_size - log_processors) / 4.0,
        log_size / np.maximum(log_processors, math.log(2.0)),
        (log - head[header.RECENT_LOG] / 1000.0) / deviation,
        np.log(1.0 + jobs[:, :, header.WAITED] / estimate) / 4.0,
        size / processors,
        np.minimum(size / np.maximum(free, 1.0), 2.0),
        fits,
        (log + log_size - head[header.RECENT_LOG_AREA] / 1000.0) / area_deviation,
        (log - head[header.RECENT_LOG_GAP] / 1000.0) / 4.0,
        np.ones_like(log),
    )
    of_states = (
        head[header.FREE] / world.processors,
        np.log(1.0 + head[header.WAITING]) / 4.0,
        np.log(1.0 + head[header.QUEUED_WORK]) / 8.0,
        np.log(1.0 + head[header.NEXT_END]) / 8.0,
        head[header.QUEUE_LOG] / 1000.0 / 4.0,
        np.log(1.0 + head[header.RUNNING_WORK]) / 8.0,
        np.log(1.0 + head[header.RUNNING]) / 4.0,
        head[header.RUNNING_LOG] / 1000.0 / 4.0,
        head[header.RECENT_LOAD] / 1000.0 / 2.0,
        deviation / 2.0,
        np.ones_like(deviation),
    )
    items = np.where(present[..., None], np.stack(of_jobs, axis=2), 0.0)
    return items.astype(np.float32), np.concatenate(of_states, axis=1).astype(np.float32)
