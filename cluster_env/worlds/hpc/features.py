"""What a network sees of a state: logarithms and shares, free of any machine's size and clock."""

import math

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined, njit_kernel
from cluster_env.worlds.hpc import site_arrays as at_site
from cluster_env.worlds.hpc import state as header

# Scales bring what is usual to about 1; nothing is cut but where it says so.
_LOG_TIME = 12.0
_LOG_COUNT = 10.0
_MOST = 4.0  # standard deviations

ITEM = (
    *("present", "log_estimate", "log_size", "size", "of_free", "fits"),
    *("relative_estimate", "relative_area", "stretch", "log_waited", "log_gaps"),
    *("backfills", "index"),
)
"""Features of a waiting job, see `item_names`; then come those of further resources."""

PRESENT, LOG_ESTIMATE, LOG_SIZE, SIZE, OF_FREE, FITS, RELATIVE_ESTIMATE, RELATIVE_AREA = range(8)
STRETCH, LOG_WAITED, LOG_GAPS, BACKFILLS, INDEX = range(8, len(ITEM))


def item_names(resources: tuple[str, ...], num_classes: int = 1) -> tuple[str, ...]:
    """Names of a waiting job's features, in order.

    ln is the natural logarithm, N the processors of the machine, or of the job's partition at a
    site, m and s mean and standard deviation over jobs that arrived lately.

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
    * ``class_c``: 1 if the job is of class c; only if the machine has more than one class.
    """
    classes = range(num_classes if num_classes > 1 else 0)
    of_resources = (f"of_{name}" for name in resources[1:])
    return (*ITEM, *of_resources, *(f"class_{c}" for c in classes))


def context_names(resources: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the context's features, in order.

    Times and work are in seconds (work of the whole machine), as the ln of one more / 12, numbers
    of jobs as the ln of one more / 10, and means of ln(estimate) over 12.

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
    job_size: int,
    items: NDArray[np.float32],
    context: NDArray[np.float32],
    allowed: NDArray[np.bool_],
    site: bool,
) -> None:
    """Fills features of states; see `item_names`, `context_names` and `HPC.features`."""
    queue, classes_at = items.shape[1], len(ITEM) + capacity.size - 1
    for i in range(states.shape[0]):
        state = states[i]
        _describe_context(state, capacity, queue, context[i])
        # Jobs that are seen; those that fit may start.
        seen = min(np.int64(state[header.WAITING]), queue)
        some = False
        for slot in range(seen):
            job = state[jobs_at + slot * job_size : jobs_at + (slot + 1) * job_size]
            fit = _describe_job(state, job, capacity, items[i, slot], site)
            items[i, slot, INDEX] = slot / max(queue - 1, 1)
            for column in range(classes_at, items.shape[2]):  # the class is a job's last number
                items[i, slot, column] = 1.0 if job[job_size - 1] == column - classes_at else 0.0
            allowed[i, slot] = fit
            some = some or fit
        # Empty places; and waiting, which an empty machine may not where all that wait fit.
        items[i, seen:] = 0.0
        allowed[i, seen:queue] = False
        allowed[i, queue] = site or state[header.RUNNING] > 0 or not some


@njit_inlined
def _describe_job(
    state: NDArray[np.int32],
    job: NDArray[np.int32],
    capacity: NDArray[np.int64],
    out: NDArray[np.float32],
    site: bool,
) -> bool:
    """Fills the features of one job but its place in the queue; returns whether it fits."""
    # May it start, and would it delay the oldest waiting job?
    fit, processors, free = True, float(capacity[0]), float(state[header.FREE])
    for r in range(capacity.size):
        fit = fit and job[header.DEMAND + r] <= state[header.FREE + r]
    in_time = job[header.ESTIMATE] <= state[header.RESERVATION] or state[header.RESERVATION] == 0
    backfills = fit and (in_time or job[header.DEMAND] <= state[header.SPARE])
    if site:  # its partition is its machine
        own = job[header.DEMAND + capacity.size :]
        fit, backfills = own[at_site.MAY_START] > 0, own[at_site.BACKFILLS] > 0
        processors = float(own[at_site.PARTITION_PROCESSORS])
        free = float(own[at_site.PARTITION_FREE])
    # The job by itself, beside the machine, beside those that came lately, and in the queue.
    estimate, waited = float(job[header.ESTIMATE]), float(job[header.WAITED])
    size = float(job[header.DEMAND])
    log, log_size = math.log(estimate), math.log(size)
    log_gap = state[header.RECENT_LOG_GAP] / 1000.0
    out[PRESENT] = 1.0
    out[LOG_ESTIMATE] = log / _LOG_TIME
    out[LOG_SIZE] = log_size / math.log(max(processors, 2.0))
    out[SIZE] = size / processors
    out[OF_FREE] = min(size / max(free, 1.0), 2.0)
    out[FITS] = 1.0 if fit else 0.0
    out[RELATIVE_ESTIMATE] = _relative(
        log, state[header.RECENT_LOG], state[header.RECENT_LOG_DEVIATION]
    )
    out[RELATIVE_AREA] = _relative(
        log + log_size, state[header.RECENT_LOG_AREA], state[header.RECENT_LOG_AREA_DEVIATION]
    )
    out[STRETCH] = math.log(1.0 + waited / estimate) / _LOG_COUNT
    out[LOG_WAITED] = math.log(1.0 + waited) / _LOG_TIME
    out[LOG_GAPS] = (log - log_gap) / _LOG_TIME
    out[BACKFILLS] = 1.0 if backfills else 0.0
    for r in range(1, capacity.size):
        out[INDEX + r] = job[header.DEMAND + r] / capacity[r]
    return fit


@njit_inlined
def _relative(value: float, mean: int, deviation: int) -> float:
    """How many deviations, given in thousandths, above the mean; as a share of the most."""
    away = (value - mean / 1000.0) / max(deviation / 1000.0, 0.1)
    return min(max(away, -_MOST), _MOST) / _MOST


@njit_inlined
def _describe_context(
    state: NDArray[np.int32], capacity: NDArray[np.int64], queue: int, out: NDArray[np.float32]
) -> None:
    """Fills the features of the context."""
    unseen = max(int(state[header.WAITING]) - queue, 0)
    values = (  # in the order of `context_names`
        math.log(1.0 + state[header.WAITING]) / _LOG_COUNT,
        math.log(1.0 + state[header.RUNNING]) / _LOG_COUNT,
        math.log(1.0 + unseen) / _LOG_COUNT,
        math.log(1.0 + state[header.NEXT_END]) / _LOG_TIME,
        math.log(1.0 + state[header.RESERVATION]) / _LOG_TIME,
        state[header.SPARE] / capacity[0],
        math.log(1.0 + state[header.QUEUED_WORK]) / _LOG_TIME,
        math.log(1.0 + state[header.RUNNING_WORK]) / _LOG_TIME,
        state[header.QUEUE_LOG] / 1000.0 / _LOG_TIME,
        state[header.RUNNING_LOG] / 1000.0 / _LOG_TIME,
        state[header.RECENT_LOG] / 1000.0 / _LOG_TIME,
        state[header.RECENT_LOG_DEVIATION] / 1000.0 / _MOST,
        state[header.RECENT_LOAD] / 1000.0 / _MOST,
    )
    for k in range(len(values)):
        out[k] = values[k]
    # Shares of the resources that are free.
    for r in range(capacity.size):
        out[len(values) + r] = state[header.FREE + r] / capacity[r]
