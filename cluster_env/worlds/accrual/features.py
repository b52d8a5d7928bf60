"""What a network sees of a state: the machine as it is, and as each candidate would make it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.accrual.state import CANDIDATE, HEADER, MILLION, Options, candidate_of


class Item(NamedTuple):
    """Columns of a candidate's features, all from 0 to 1.

    ``unit_utility``, ``time_left`` and ``idle`` are all that a value function of the paper sees.
    """

    present: int
    unit_utility: int  # x1 of the machine if it were taken
    time_left: int  # x2 / MaxJobLength, at most 1
    idle: int  # x3 / N
    job_utility: int  # unit utility that the job itself would reach
    size: int  # K / N
    steps: int  # that it would run, over MaxJobLength, at most 1
    worth: int  # `job_utility` x `size`
    full_utility: int  # unit utility of the job on all that it asks for from now on: what it has to
    wait_utility: int  # lose by a squeeze; and from the next finish on: what by waiting
    lost: int  # l / (l + 1), l what preempted jobs lose if they wait until the job is done


class Context(NamedTuple):
    """Columns of the context's features, all from 0 to 1.

    Work and utility are counted in MaxJobLength of the whole machine.
    """

    unit_utility: int  # x1 of the machine as it is
    time_left: int  # x2 / MaxJobLength, at most 1
    idle: int  # x3 / N
    preempting: int  # 1 for what is to be decided; both 0 where nothing can be
    squeezing: int
    waiting: int  # n / (n + 4), n jobs
    waiting_work: int  # w / (w + 1)
    waiting_utility: int  # mean unit utility of waiting jobs if they started now
    slope: int  # s / (s + 1), s the processors over N that waiting jobs ask for which are still
    # worth something: while a job with the paper's function waits, it loses as much in each step
    promised: int  # p / (p + 1), p the final utility that running jobs are expected to reach


ITEM = Item(*range(len(Item._fields)))
CONTEXT = Context(*range(len(Context._fields)))


@njit_kernel
def describe(
    options: Options,
    states: NDArray[np.int32],
    items: NDArray[np.float32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
) -> None:
    """Fills features of states; see `Item`, `Context` and `Accrual.features`."""
    # What a whole machine does in MaxJobLength is the unit of work and of utility.
    longest, processors = options.longest, options.processors
    server = float(processors * longest)
    for i in range(states.shape[0]):
        # The machine as it is, and its queue.
        state, out = states[i], context[i]
        out[CONTEXT.unit_utility] = state[HEADER.unit_utility] / MILLION
        out[CONTEXT.time_left] = min(state[HEADER.time_left] / longest, 1.0)
        out[CONTEXT.idle] = state[HEADER.idle] / processors
        out[CONTEXT.preempting] = state[HEADER.stage] == 1
        out[CONTEXT.squeezing] = state[HEADER.stage] == 2
        out[CONTEXT.waiting] = state[HEADER.waiting] / (state[HEADER.waiting] + 4.0)
        work, slope = state[HEADER.waiting_work] / server, state[HEADER.slope] / processors
        promised = state[HEADER.promised] / server
        out[CONTEXT.waiting_work] = work / (work + 1.0)
        out[CONTEXT.waiting_utility] = state[HEADER.waiting_utility] / MILLION
        out[CONTEXT.slope], out[CONTEXT.promised] = (
            slope / (slope + 1.0),
            promised / (promised + 1.0),
        )
        # What each candidate would make of it.
        for k in range(options.candidates):
            candidate, item = candidate_of(state, k), items[i, k]
            item[ITEM.present] = candidate[CANDIDATE.present]
            item[ITEM.unit_utility] = candidate[CANDIDATE.unit_utility] / MILLION
            item[ITEM.time_left] = min(candidate[CANDIDATE.time_left] / longest, 1.0)
            item[ITEM.idle] = candidate[CANDIDATE.idle] / processors
            item[ITEM.job_utility] = candidate[CANDIDATE.job_utility] / MILLION
            item[ITEM.size] = candidate[CANDIDATE.size] / processors
            item[ITEM.steps] = min(candidate[CANDIDATE.steps] / longest, 1.0)
            item[ITEM.worth] = item[ITEM.job_utility] * item[ITEM.size]
            item[ITEM.full_utility] = candidate[CANDIDATE.full_utility] / MILLION
            item[ITEM.wait_utility] = candidate[CANDIDATE.wait_utility] / MILLION
            lost = candidate[CANDIDATE.lost] / server
            item[ITEM.lost] = lost / (lost + 1.0)
            allowed[i, k] = candidate[CANDIDATE.present] > 0
        allowed[i, options.candidates] = True  # void
