"""In which order jobs wait: every ordinary rule as a score, lower first, equals by arrival.

A score is *fixed* if it depends on the job alone, and *moving* if it changes while the job waits.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined

SHORTEST_S = 10
"""Seconds that shorter jobs count as, in `wspt` as in the bounded slowdown."""

AGE_S = 7 * 24 * 3600
"""Waiting time from which a job's age gains nothing more in `priority`, a week as Slurm has it."""

_NOT_0 = 1e-15  # a job that has just arrived, or asks for one processor, still has an order

FIXED, WFP3, UNICEP, PACKER, TETRIS, PRIORITY = range(6)

Scores = NDArray[np.float64]
Score = Callable[[Scores, Scores, Scores], Scores]

FIXED_ORDERS: Mapping[str, Score] = {
    "fcfs": lambda estimate, size, submit: np.zeros_like(estimate),
    "lcfs": lambda estimate, size, submit: -np.arange(estimate.size, dtype=np.float64),
    "sjf": lambda estimate, size, submit: estimate,
    "ljf": lambda estimate, size, submit: -estimate,
    "narrow": lambda estimate, size, submit: size,
    "saf": lambda estimate, size, submit: estimate * size,
    "wspt": lambda estimate, size, submit: estimate * np.maximum(estimate, SHORTEST_S) * size,
    "f1": lambda r, n, s: np.log10(r) * n + 870 * np.log10(np.maximum(s, 1)),
    "f2": lambda r, n, s: np.sqrt(r) * n + 25_600 * np.log10(np.maximum(s, 1)),
    "f3": lambda r, n, s: r * n + 6_860_000 * np.log10(np.maximum(s, 1)),
    "f4": lambda r, n, s: r * np.sqrt(n) + 530_000 * np.log10(np.maximum(s, 1)),
}
"""From estimates (seconds), processors and times of submission (seconds of the log's own clock).

`f1` to `f4` are those of Carastan-Santos and de Camargo (SC 2017); they depend on when the log
began, so that they mean little on generated jobs.
"""

MOVING_ORDERS: Mapping[str, int] = {
    "wfp3": WFP3,
    "unicep": UNICEP,
    "packer": PACKER,
    "tetris": TETRIS,
    "priority": PRIORITY,
}
"""`wfp3` and `unicep` are those of Tang et al. (2009); `priority` is a site's weighted sum of age,
size and fair share (`cluster_env.worlds.hpc.rules.Weights`)."""


@njit_inlined
def moving_score(
    kind: int,
    waited: int,
    estimate: int,
    demand: NDArray[np.int32],
    free: NDArray[Any],
    capacity: NDArray[np.int64],
    weights: NDArray[np.float64],
    fair_share: float,
) -> float:
    """The score of one waiting job.

    Args:
        kind: one of `MOVING_ORDERS`.
        waited: seconds since its arrival.
        estimate: seconds.
        demand: units of each resource.
        free: units that are free.
        capacity: units that there are.
        weights: of age, size and fair share.
        fair_share: 1 for a user who has used nothing lately, near 0 for one who used it all.
    """
    size = float(demand[0])
    if kind == WFP3:
        return -((waited / estimate) ** 3) * size
    if kind == UNICEP:
        return -(waited + _NOT_0) / (math.log2(size + _NOT_0) * estimate)
    if kind == PRIORITY:
        age = min(waited / AGE_S, 1.0)
        return -(weights[0] * age + weights[1] * size / capacity[0] + weights[2] * fair_share)
    alignment = 0.0
    for r in range(free.size):
        alignment += float(free[r]) / capacity[r] * demand[r] / capacity[r]
    return -alignment if kind == PACKER else -0.5 * (alignment + 1.0 / estimate)
