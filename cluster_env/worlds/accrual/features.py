"""What a network sees of a state: the server as it is, and as each candidate would make it."""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.accrual.arrays import CANDIDATE, HEADER, MILLION

ITEM = (
    *("present", "unit_utility", "time_left", "idle", "job_utility", "size", "steps", "worth"),
    *("full_utility", "wait_utility", "lost"),
)
"""Names of a candidate's features, all from 0 to 1.

* ``unit_utility``, ``time_left``, ``idle``: x1, x2 / MaxJobLength (at most 1) and x3 / N of the
  server if it were taken: all that a value function of the paper looks at.
* ``job_utility``: unit utility that the job itself would reach; ``size``: K / N; ``steps``: that it
  would run, over MaxJobLength, at most 1; ``worth``: ``job_utility`` x ``size``.
* ``full_utility``, ``wait_utility``: unit utility that the job would reach if it had all processors
  that it asks for from now on, or from the next finish on: what it has to lose by a squeeze, and
  what by waiting.
* ``lost``: l / (l + 1), l the final utility that preempted jobs lose if they wait until the job is
  done, in MaxJobLength of the whole server.
"""

CONTEXT = (
    *("unit_utility", "time_left", "idle", "preempting", "squeezing"),
    *("waiting", "waiting_work", "waiting_utility", "slope", "promised"),
)
"""Names of the context's features, all from 0 to 1.

* ``unit_utility``, ``time_left``, ``idle``: the same of the server as it is.
* ``preempting``, ``squeezing``: 1 for what is to be decided; both 0 where nothing can be.
* ``waiting``: jobs, n / (n + 4); ``waiting_work``: w / (w + 1), w in MaxJobLength of the whole
  server; ``waiting_utility``: mean unit utility of waiting jobs if they started now.
* ``slope``: s / (s + 1), s the processors over N that waiting jobs ask for which are still worth
  something: while a job with the paper's function waits, it loses as much utility in each step.
* ``promised``: p / (p + 1), p the final utility that running jobs are expected to reach, in
  MaxJobLength of the whole server.
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
        server = float(processors * longest)
        work, slope, promised = state[5] / server, state[7] / processors, state[8] / server
        out[5], out[6] = state[4] / (state[4] + 4.0), work / (work + 1.0)
        out[7] = state[6] / MILLION
        out[8], out[9] = slope / (slope + 1.0), promised / (promised + 1.0)
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
            item[8], item[9] = state[at + 7] / MILLION, state[at + 8] / MILLION
            lost = state[at + 9] / server
            item[10] = lost / (lost + 1.0)
            allowed[i, k] = state[at] > 0
        allowed[i, items.shape[1]] = True
