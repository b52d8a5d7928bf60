"""What a network sees of a state: logarithms and shares, free of any machine's size and clock."""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel

# Scales bring what is usual to about 1; nothing is cut but where it says so.
_LOG_TIME = 12.0
_LOG_COUNT = 10.0
_MOST = 4.0  # standard deviations


def item_names(resources: tuple[str, ...]) -> tuple[str, ...]:
    """Names of a waiting job's features, in order.

    ln is the natural logarithm, N the processors of the machine, m and s mean and standard
    deviation over jobs that arrived lately.

    * ``present``: 1.
    * ``log_estimate``: ln(estimate) / 12.
    * ``log_size``: ln(processors) / ln N; ``size``: processors / N.
    * ``of_free``: processors / free ones, at most 2.
    * ``fits``: 1 if it could start now.
    * ``relative_estimate``: (ln(estimate) - m) / s, at most 4 away from 0, over 4;
      ``relative_area``: the same of estimate x processors.
    * ``stretch``: ln(1 + waited / estimate) / 10; ``log_waited``: ln(1 + waited) / 12.
    * ``log_gaps``: ln(estimate) less the mean of ln(1 + seconds between arrivals), / 12.
    * ``backfills``: 1 if it fits, and ends as expected before the oldest waiting job can start, or
      needs no more than is spare then.
    * ``index``: place in the queue, 0 to 1.
    * ``of_<resource>``: share of each further resource that it asks for.
    """
    further = (f"of_{name}" for name in resources[1:])
    return (
        *("present", "log_estimate", "log_size", "size", "of_free", "fits"),
        *("relative_estimate", "relative_area", "stretch", "log_waited", "log_gaps"),
        *("backfills", "index", *further),
    )


def context_names(resources: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the context's features, in order.

    Times and work are in seconds (work of the whole machine), as ln(1 + it) / 12, numbers of jobs
    as ln(1 + it) / 10, and means of ln(estimate) over 12.

    * ``waiting``, ``running``: numbers; ``unseen``: waiting jobs beyond the queue that is seen.
    * ``next_end``: time to the next expected end; ``reservation``: to when the oldest waiting job
      is expected to fit; ``spare``: share of the processors that is free beside it then.
    * ``queued_work``, ``running_work``; ``queue_log``, ``running_log``, ``recent_log``: means.
    * ``recent_deviation``: standard deviation of ln(estimate) lately, / 4.
    * ``recent_load``: ln of the work that arrives in a second lately, / 4.
    * ``free_<resource>``: share that is free.
    """
    return (
        *("waiting", "running", "unseen", "next_end", "reservation", "spare"),
        *("queued_work", "running_work", "queue_log", "running_log", "recent_log"),
        *("recent_deviation", "recent_load"),
        *(f"free_{name}" for name in resources),
    )


@njit_kernel
def describe(
    states: NDArray[np.int32],
    capacity: NDArray[np.int64],
    jobs_at: int,
    items: NDArray[np.float32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
) -> None:
    """Fills features of states; see `item_names`, `context_names` and `HPC.features`."""
    num_resources, queue = capacity.size, items.shape[1]
    free_at = jobs_at - num_resources
    for i in range(states.shape[0]):
        state = states[i]
        _describe_context(state, capacity, free_at, queue, context[i])
        seen = min(np.int64(state[0]), queue)
        some = False
        for slot in range(seen):
            at = jobs_at + slot * (2 + num_resources)
            fit = _describe_job(state, at, free_at, capacity, items[i, slot])
            items[i, slot, 12] = slot / max(queue - 1, 1)
            allowed[i, slot] = fit
            some = some or fit
        items[i, seen:] = 0.0
        allowed[i, seen:queue] = False
        allowed[i, queue] = state[1] > 0 or not some


@njit_inlined
def _describe_job(
    state: NDArray[np.int32],
    at: int,
    free_at: int,
    capacity: NDArray[np.int64],
    out: NDArray[np.float32],
) -> bool:
    """Fills the features of one job but its place; returns whether it fits."""
    num_resources = capacity.size
    fit = True
    for r in range(num_resources):
        fit = fit and state[at + 2 + r] <= state[free_at + r]
    estimate, waited, size = float(state[at]), float(state[at + 1]), float(state[at + 2])
    log, log_size = math.log(estimate), math.log(size)
    backfills = fit and (state[at] <= state[3] or state[3] == 0 or state[at + 2] <= state[4])
    out[0] = 1.0
    out[1] = log / _LOG_TIME
    out[2] = log_size / math.log(max(float(capacity[0]), 2.0))
    out[3] = size / capacity[0]
    out[4] = min(size / max(float(state[free_at]), 1.0), 2.0)
    out[5] = 1.0 if fit else 0.0
    out[6] = _relative(log, state[9], state[10])
    out[7] = _relative(log + log_size, state[11], state[12])
    out[8] = math.log(1.0 + waited / estimate) / _LOG_COUNT
    out[9] = math.log(1.0 + waited) / _LOG_TIME
    out[10] = (log - state[13] / 1000.0) / _LOG_TIME
    out[11] = 1.0 if backfills else 0.0
    for r in range(1, num_resources):
        out[12 + r] = state[at + 2 + r] / capacity[r]
    return fit


@njit_inlined
def _relative(value: float, mean: int, deviation: int) -> float:
    """How many deviations, given in thousandths, above the mean; as a share of the most."""
    away = (value - mean / 1000.0) / max(deviation / 1000.0, 0.1)
    return min(max(away, -_MOST), _MOST) / _MOST


@njit_inlined
def _describe_context(
    state: NDArray[np.int32],
    capacity: NDArray[np.int64],
    free_at: int,
    queue: int,
    out: NDArray[np.float32],
) -> None:
    out[0] = math.log(1.0 + state[0]) / _LOG_COUNT
    out[1] = math.log(1.0 + state[1]) / _LOG_COUNT
    out[2] = math.log(1.0 + max(int(state[0]) - queue, 0)) / _LOG_COUNT
    out[3] = math.log(1.0 + state[2]) / _LOG_TIME
    out[4] = math.log(1.0 + state[3]) / _LOG_TIME
    out[5] = state[4] / capacity[0]
    out[6] = math.log(1.0 + state[5]) / _LOG_TIME
    out[7] = math.log(1.0 + state[6]) / _LOG_TIME
    out[8] = state[7] / 1000.0 / _LOG_TIME
    out[9] = state[8] / 1000.0 / _LOG_TIME
    out[10] = state[9] / 1000.0 / _LOG_TIME
    out[11] = state[10] / 1000.0 / _MOST
    out[12] = state[14] / 1000.0 / _MOST
    for r in range(capacity.size):
        out[13 + r] = state[free_at + r] / capacity[r]
