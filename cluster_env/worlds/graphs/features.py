"""What a network sees of a state: the cluster, and stages, or numbers of executors for one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel
from cluster_env.worlds.graphs.state import CANDIDATE, HEADER, Options, candidate_of


class Item(NamedTuple):
    """Columns of an item's features: of a stage, or of so many executors for the picked stage."""

    present: int
    number: int  # of executors over those of the cluster; 0 while a stage is to be picked
    takes: int  # the same over the most that the stage can take
    after: int  # executors of the job then, over those of the cluster, at most 2
    own: int  # 1 if the executors are at its job
    ready: int  # 1 if its parents have ended
    held: int  # executors of the job over those of the cluster
    wanted: int  # tasks that nobody is to run yet over executors, at most 2
    log_time: int  # ln(mean time of a task in s) / 4
    log_path: int  # ln(longest path to the end in s) / 4
    log_left: int  # ln(1 + work left of the job in executors x s) / 8
    log_work: int  # the same of all of its work
    log_age: int  # ln(1 + age of the job in s) / 4


class Context(NamedTuple):
    """Columns of the context's features."""

    counting: int  # 1 where executors are counted, 0 where a stage is picked
    free: int  # executors to be assigned over those of the cluster
    busy: int  # executors over those of the cluster
    jobs: int  # ln(1 + jobs) / 4
    log_left: int  # ln(1 + work left of all jobs in executors x s) / 8
    size: int  # mean ln of the work of the last jobs in executors x s, / 8
    burst: int  # how bursty they came, from -1 to 1


ITEM = Item(*range(len(Item._fields)))
CONTEXT = Context(*range(len(Context._fields)))


@njit_kernel
def describe(
    options: Options,
    states: NDArray[np.int32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
) -> None:
    """Fills features of states and what is allowed; see `Context` and `Graphs.features`."""
    executors = float(options.executors)
    for i in range(states.shape[0]):
        state, out = states[i], context[i]
        out[CONTEXT.counting] = state[HEADER.phase] == 2
        out[CONTEXT.free] = state[HEADER.free] / executors
        out[CONTEXT.busy] = state[HEADER.busy] / executors
        out[CONTEXT.jobs] = np.log(1.0 + state[HEADER.jobs]) / 4.0
        out[CONTEXT.log_left] = np.log(1.0 + state[HEADER.work_left]) / 8.0
        milliseconds = state[HEADER.recent_log_work] / 1000.0
        out[CONTEXT.size] = max(milliseconds - np.log(1000.0), 0.0) / 8.0
        out[CONTEXT.burst] = state[HEADER.recent_burst] / 1000.0
        for k in range(options.items):
            allowed[i, k] = candidate_of(state, k)[CANDIDATE.here] != 0
        allowed[i, options.items] = state[HEADER.must] == 0


@njit_kernel
def describe_stages(
    options: Options, states: NDArray[np.int32], first: int, items: NDArray[np.float32]
) -> None:
    """Fills features of stages of states, float32 ``(n, num_stages, len(ITEM))``; see `Item`.

    The candidates begin at 0, the nodes at ``options.items``.
    """
    executors = float(options.executors)
    items[:] = 0.0
    for i in range(states.shape[0]):
        for k in range(items.shape[1]):
            column, item = candidate_of(states[i], first + k), items[i, k]
            if column[CANDIDATE.here] == 0:
                break
            count, held = column[CANDIDATE.number], column[CANDIDATE.held]
            item[ITEM.present] = 1.0
            item[ITEM.number] = count / executors
            item[ITEM.takes] = count / max(states[i, HEADER.most], 1)
            added = 0 if column[CANDIDATE.own] > 0 else count
            item[ITEM.after] = min((held + added) / executors, 2.0)
            item[ITEM.own], item[ITEM.ready] = column[CANDIDATE.own], column[CANDIDATE.ready]
            item[ITEM.held] = min(held / executors, 2.0)
            item[ITEM.wanted] = min(column[CANDIDATE.wanted] / executors, 2.0)
            item[ITEM.log_time] = np.log(max(column[CANDIDATE.time], 1) / 1000.0) / 4.0
            item[ITEM.log_path] = np.log(max(column[CANDIDATE.path], 1) / 1000.0) / 4.0
            item[ITEM.log_left] = np.log(1.0 + column[CANDIDATE.work_left]) / 8.0
            item[ITEM.log_work] = np.log(1.0 + column[CANDIDATE.work]) / 8.0
            item[ITEM.log_age] = np.log(1.0 + column[CANDIDATE.age] / 1000.0) / 4.0
