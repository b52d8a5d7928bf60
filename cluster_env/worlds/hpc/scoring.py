"""A scorer on states: what it would start next, as far as a state shows it."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.hpc.scorer import LEAST_DEVIATION, Scorer
from cluster_env.worlds.hpc.state import HEADER
from cluster_env.worlds.hpc.world import HPC


def score_states(
    scorer: Scorer, world: HPC, states: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores the waiting jobs of states.

    Simulators that play a scorer are exact; a state shows a part of the queue, rounds what it sums
    up, and knows the reservation of the oldest waiting job alone, so that ``easy`` and
    ``gated_easy`` keep that one.

    Args:
        scorer: the scorer.
        world: whose states they are.
        states: int32 ``(n, state_size)``.

    Returns:
        Scores, float64 ``(n, queue)``, and what may be done, bool ``(n, queue + 1)``: start a job,
        and, last, wait.
    """
    layout = world.layout
    jobs = states[:, layout.jobs_at :].reshape(states.shape[0], layout.queue, layout.job_size)
    header = dict(zip(HEADER, states[:, : len(HEADER)].T.astype(np.float64), strict=True))
    free = states[:, layout.jobs_at - len(world.capacity) : layout.jobs_at]
    present = np.arange(layout.queue) < np.minimum(states[:, :1], layout.queue)
    fits = present & (jobs[:, :, 2:] <= free[:, None]).all(axis=2)
    of_jobs = _of_jobs(world, header, jobs.astype(np.float64), free[:, :1], fits)
    of_state = _of_state(world, header, free[:, 0])
    scores = np.einsum("nqi,ij,nj->nq", of_jobs, scorer.weights, of_state)
    scores[~present] = np.inf
    return scores, _allowed(scorer.mode, scores, fits, states, jobs, header)


def _of_jobs(
    world: HPC,
    header: dict[str, NDArray[np.float64]],
    jobs: NDArray[np.float64],
    free: NDArray[np.int32],
    fits: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """See `cluster_env.worlds.hpc.scorer.JOB_FEATURES`."""
    estimate, waited, size = (np.maximum(jobs[:, :, k], k != 1) for k in range(3))
    log, log_size, machine = np.log(estimate), np.log(size), np.log(world.processors)
    thousandths = {name: values[:, None] / 1000 for name, values in header.items()}
    deviation = np.maximum(thousandths["recent_log_deviation"], LEAST_DEVIATION)
    area_deviation = np.maximum(thousandths["recent_log_area_deviation"], LEAST_DEVIATION)
    columns = (
        log / 4,
        (log_size - machine) / 4,
        log_size / max(machine, np.log(2)),
        (log - thousandths["recent_log"]) / deviation,
        np.log(1 + waited / estimate) / 4,
        size / world.processors,
        np.minimum(size / np.maximum(free, 1), 2),
        fits,
        (log + log_size - thousandths["recent_log_area"]) / area_deviation,
        (log - thousandths["recent_log_gap"]) / 4,
        np.ones_like(log),
    )
    return np.stack(columns, axis=2)


def _of_state(
    world: HPC, header: dict[str, NDArray[np.float64]], free: NDArray[np.int32]
) -> NDArray[np.float64]:
    """See `cluster_env.worlds.hpc.scorer.STATE_FEATURES`."""
    deviation = np.maximum(header["recent_log_deviation"] / 1000, LEAST_DEVIATION)
    columns = (
        free / world.processors,
        np.log(1 + header["waiting"]) / 4,
        np.log(1 + header["queued_work"]) / 8,
        np.log(1 + header["next_end"]) / 8,
        header["queue_log"] / 4000,
        np.log(1 + header["running_work"]) / 8,
        np.log(1 + header["running"]) / 4,
        header["running_log"] / 4000,
        header["recent_load"] / 2000,
        deviation / 2,
        np.ones_like(deviation),
    )
    return np.stack(columns, axis=1)


def _allowed(
    mode: str,
    scores: NDArray[np.float64],
    fits: NDArray[np.bool_],
    states: NDArray[np.int32],
    jobs: NDArray[np.int32],
    header: dict[str, NDArray[np.float64]],
) -> NDArray[np.bool_]:
    """What a mode lets start, and whether it may wait."""
    allowed = fits
    if mode == "strict":
        first = np.arange(fits.shape[1]) == scores.argmin(axis=1)[:, None]
        allowed = fits & first
    elif mode in ("easy", "gated_easy"):
        reservation, spare = header["reservation"][:, None], header["spare"][:, None]
        in_time = (jobs[:, :, 0] <= reservation) | (jobs[:, :, 2] <= spare)
        allowed = fits & (in_time | (reservation == 0))
    some = np.asarray(allowed.any(axis=1))
    running = states[:, 1] > 0
    waits = running if mode.startswith("gate") else ~some
    return np.concatenate([allowed, (waits | ~some)[:, None]], axis=1)
