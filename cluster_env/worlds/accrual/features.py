"""What a network sees of a state: the server as it is, and as each candidate would make it."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.accrual.arrays import CANDIDATE, HEADER, MILLION

ITEM = ("present", "unit_utility", "time_left", "idle", "job_utility", "size", "steps", "worth")
"""Names of a candidate's features, all from 0 to 1.

* ``unit_utility``, ``time_left``, ``idle``: x1, x2 / MaxJobLength (at most 1) and x3 / N of the
  server if it were taken: all that a value function of the paper looks at.
* ``job_utility``: unit utility that the job itself would reach; ``size``: K / N; ``steps``: that it
  would run, over MaxJobLength, at most 1; ``worth``: ``job_utility`` x ``size``.
"""

CONTEXT = (
    *("unit_utility", "time_left", "idle", "preempting", "squeezing"),
    *("waiting", "waiting_work", "waiting_utility"),
)
"""Names of the context's features, all from 0 to 1.

* ``unit_utility``, ``time_left``, ``idle``: the same of the server as it is.
* ``preempting``, ``squeezing``: 1 for what is to be decided; both 0 where nothing can be.
* ``waiting``: jobs, n / (n + 4); ``waiting_work``: w / (w + 1), w in MaxJobLength of the whole
  server; ``waiting_utility``: mean unit utility of waiting jobs if they started now.
"""

_AT, _SIZE = len(HEADER), len(CANDIDATE)


@njit_kernel
def describe(
    states: NDArray[np.int32],
    processors: int,
    longest: int,
    items: NDArray[np.float32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
) -> None:
    """Fills features of states; see `ITEM`, `CONTEXT` and `Accrual.features`."""
    for i in range(states.shape[0]):
        state, out = states[i], context[i]
        out[0] = state[1] / MILLION
        out[1] = min(state[2] / longest, 1.0)
        out[2] = state[3] / processors
        out[3], out[4] = state[0] == 1, state[0] == 2
        work = state[5] / (processors * longest)
        out[5], out[6] = state[4] / (state[4] + 4.0), work / (work + 1.0)
        out[7] = state[6] / MILLION
        for k in range(items.shape[1]):
            at, item = _AT + k * _SIZE, items[i, k]
            item[0] = state[at]
            item[1] = state[at + 1] / MILLION
            item[2] = min(state[at + 2] / longest, 1.0)
            item[3] = state[at + 3] / processors
            item[4] = state[at + 4] / MILLION
            item[5] = state[at + 5] / processors
            item[6] = min(state[at + 6] / longest, 1.0)
            item[7] = item[4] * item[5]
            allowed[i, k] = state[at] > 0
        allowed[i, items.shape[1]] = True
