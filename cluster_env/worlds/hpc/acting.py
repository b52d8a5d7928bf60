"""Rules on states: what they would start next, as far as a state shows it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_states
from cluster_env.core.compiled import njit_kernel
from cluster_env.core.errors import InputError
from cluster_env.worlds.hpc.orders import FIXED, FIXED_ORDERS, MOVING_ORDERS, moving_score
from cluster_env.worlds.hpc.rules import BACKFILLING, PEER, Rule

STRICT, SKIP = 0, 1


def act_by_rule(
    rule: Rule, world: Any, states: NDArray[np.int32], uniforms: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Chooses an action for each state.

    Reservations are known of the oldest waiting job alone, so that ``easy`` and ``conservative``
    keep that one; the clock of `f1` to `f4` is the waiting time, and fair shares are not known.

    Args:
        rule: any but those of other event loops.
        world: an `HPC`.
        states: int32 ``(n, state_size)``.
        uniforms: float64 ``(n,)``, for the order `random`.

    Raises:
        InputError: for a rule of another event loop, which cannot decide state by state.
    """
    if rule.backfilling in PEER:
        raise InputError(
            f"{rule.backfilling}'s rules play whole episodes and cannot act on a state"
        )
    require_states(states, world.state_space)
    layout = world.layout
    jobs = states[:, layout.jobs_at :].reshape(states.shape[0], layout.queue, layout.job_size)
    estimate, waited = jobs[:, :, 0].astype(np.float64), jobs[:, :, 1]
    size = jobs[:, :, 2].astype(np.float64)
    if rule.order == "random":
        place = np.arange(layout.queue) / layout.queue
        scores = (uniforms[:, None] + place) % 1.0
    elif rule.order == "lcfs":
        scores = waited.astype(np.float64)
    elif rule.order in FIXED_ORDERS:
        filled = [np.maximum(column, 1).ravel() for column in (estimate, size, -waited)]
        scores = FIXED_ORDERS[rule.order](*filled).reshape(size.shape)
    else:
        scores = np.zeros_like(size)
    left_free = np.zeros(size.shape, np.int64)
    if rule.reserve is not None:
        left_free = rule.reserve.left_free(jobs[:, :, 0], world.processors)
    actions = np.empty(states.shape[0], np.int32)
    weights = np.array([rule.weights.age, rule.weights.size, rule.weights.fair_share])
    _choose(
        states,
        jobs,
        np.asarray(world.capacity, np.int64),
        layout.jobs_at,
        MOVING_ORDERS.get(rule.order, FIXED),
        min(BACKFILLING.index(rule.backfilling), 2),
        scores,
        left_free,
        weights,
        actions,
    )
    return actions


@njit_kernel
def _choose(
    states: NDArray[np.int32],
    jobs: NDArray[np.int32],
    capacity: NDArray[np.int64],
    jobs_at: int,
    kind: int,
    mode: int,
    scores: NDArray[np.float64],
    left_free: NDArray[np.int64],
    weights: NDArray[np.float64],
    actions: NDArray[np.int32],
) -> None:
    num_resources, queue = capacity.size, jobs.shape[1]
    for i in range(states.shape[0]):
        state = states[i]
        free = state[jobs_at - num_resources : jobs_at]
        best, lowest, first, first_score = queue, np.inf, queue, np.inf
        for slot in range(min(np.int64(state[0]), queue)):
            job, score = jobs[i, slot], scores[i, slot]
            if kind != FIXED:
                score = moving_score(kind, job[1], job[0], job[2:], free, capacity, weights, 1.0)
            if score < first_score or first == queue:
                first, first_score = slot, score
            fits = True
            for r in range(num_resources):
                fits = fits and job[2 + r] <= free[r]
            if mode == SKIP and state[1] > 0:
                fits = fits and job[2] + left_free[i, slot] <= free[0]
            if mode > SKIP and slot > 0 and state[3] > 0:
                fits = fits and (job[0] <= state[3] or job[2] <= state[4])
            if fits and (score < lowest or best == queue):
                best, lowest = slot, score
        actions[i] = best if mode != STRICT or best == first else queue
