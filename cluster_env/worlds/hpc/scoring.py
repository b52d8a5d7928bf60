"""Scores of bare states under a scorer."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.hpc import site_arrays as at_site
from cluster_env.worlds.hpc import state as header
from cluster_env.worlds.hpc.features import BACKFILLS, FITS
from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION, Scorer
from cluster_env.worlds.hpc.seen import (
    Recent,
    Scoring,
    Situation,
    describe_state,
    score_job,
    weigh,
)


def score_states(
    scorer: Scorer, world: Any, states: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of the waiting jobs of states, ``(n, queue)``, and what may be done.

    The latter is bool ``(n, queue + 1)``: start a job, and, last, wait. Simulators that play a
    scorer are exact; a state shows a part of the queue, rounds what it sums up, and knows the
    reservation of the oldest waiting job alone, so that ``easy`` keeps that one.

    Raises:
        InputError: if the states are not of this `HPC`.
    """
    items = world.features(states).items
    fitting, backfills = items[:, :, FITS], items[:, :, BACKFILLS] > 0
    scores = np.full(fitting.shape, np.inf)
    layout = world.layout
    _score_all(
        states,
        layout.jobs_at,
        layout.job_size,
        layout.num_resources if layout.site else 0,
        world.processors,
        Scoring.of(scorer),
        fitting,
        scores,
    )
    # What a mode lets start; it waits where that is nothing.
    allowed = fitting > 0
    if scorer.mode == "strict":
        allowed &= np.arange(layout.queue) == scores.argmin(axis=1)[:, None]
    elif scorer.mode == "easy":
        allowed = backfills
    waits = ~allowed.any(axis=1)
    return scores, np.concatenate([allowed, waits[:, None]], axis=1)


@njit_kernel
def _score_all(
    states: NDArray[np.int32],
    jobs_at: int,
    job_size: int,
    site_at: int,
    processors: int,
    scoring: Scoring,
    fitting: NDArray[np.float32],
    scores: NDArray[np.float64],
) -> None:
    """Writes the scores of the jobs that states show, ``(n, queue)``; others are left.

    ``site_at`` says where what a site shows of a job begins behind its first demand; 0 for a pool.
    """
    for i in range(states.shape[0]):
        state = states[i]
        free = float(state[header.FREE])
        situation = Situation(
            free=free / processors,
            waiting=float(state[header.WAITING]),
            queued_work=float(state[header.QUEUED_WORK]),
            next_end=float(state[header.NEXT_END]),
            queue_log=state[header.QUEUE_LOG] / 1000.0,
            running_work=float(state[header.RUNNING_WORK]),
            running=float(state[header.RUNNING]),
            running_log=state[header.RUNNING_LOG] / 1000.0,
            load=state[header.RECENT_LOAD] / 1000.0,
        )
        recent = Recent(
            log=state[header.RECENT_LOG] / 1000.0,
            deviation=max(state[header.RECENT_LOG_DEVIATION] / 1000.0, LEAST_DEVIATION),
            area=state[header.RECENT_LOG_AREA] / 1000.0,
            area_deviation=max(state[header.RECENT_LOG_AREA_DEVIATION] / 1000.0, LEAST_DEVIATION),
            log_gap=state[header.RECENT_LOG_GAP] / 1000.0,
        )
        describe_state(situation, recent.deviation, scoring.state)
        factors = weigh(scoring, recent, float(processors))
        # The jobs that are seen.
        for slot in range(min(np.int64(state[header.WAITING]), scores.shape[1])):
            job = state[jobs_at + slot * job_size :]
            estimate, size = float(job[header.ESTIMATE]), float(job[header.DEMAND])
            if site_at > 0:  # its partition is its machine
                own = job[header.DEMAND + site_at :]
                free = float(own[at_site.PARTITION_FREE])
                factors = weigh(scoring, recent, float(own[at_site.PARTITION_PROCESSORS]))
            scores[i, slot] = factors.fits * fitting[i, slot] + score_job(
                factors,
                math.log(estimate),
                math.log(size),
                size,
                estimate + job[header.WAITED],
                1.0 / max(free, 1.0),
            )
