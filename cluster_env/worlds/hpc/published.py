"""Jobsets that others published results on: RLScheduler's windows, and whole logs."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import NamedJobsets, Value
from cluster_env.workloads.log import RECORDED, LogWorkload

WINDOWS, JOBS, SEED = 10, 1024, 1
"""Of the published table of RLScheduler (Zhang et al., SC 2020, tables V and VI)."""


def window_starts(num_jobs: int) -> list[int]:
    """Where its windows begin, as Gym 0.15 seeded its environments: the first job of each.

    Raises:
        InputError: if the log is too short.
    """
    if num_jobs < 2 * JOBS + 1:
        raise InputError(
            f"windows of {JOBS:,} jobs as RLScheduler cuts them need a log of {2 * JOBS + 1:,} "
            f"jobs, but this one has {num_jobs:,}"
        )
    words = struct.unpack("<2I", hashlib.sha512(str(SEED).encode()).digest()[:8])
    drawn = np.random.RandomState(words)
    return [int(drawn.randint(JOBS, num_jobs - JOBS)) for _ in range(WINDOWS)]


def _published(task: Any) -> Sequence[JobSet]:
    recorded = _log_of(task).recorded
    starts = window_starts(recorded.num_jobs)
    return [recorded.jobset(slice(start, start + JOBS)) for start in starts]


def _whole(task: Any) -> Sequence[JobSet]:
    return [_log_of(task).recorded.jobset()]


def _log_of(task: Any) -> LogWorkload:
    workload = task.workload
    if not isinstance(workload, LogWorkload):
        raise InputError("windows of a log need a log: --set task.workload.kind=trace")
    if workload.estimates != RECORDED:
        raise InputError(
            f"these jobs are compared with their recorded estimates, so leave out "
            f"estimates={workload.estimates}"
        )
    return workload


def _columns(jobsets: Sequence[JobSet]) -> Mapping[str, Value]:
    return {"jobset_size": jobsets[0].num_jobs, "window_s": 0}


PROTOCOLS = {
    "rlscheduler": NamedJobsets("RLScheduler's windows", _published, _columns),
    "whole": NamedJobsets("the whole log", _whole, _columns),
}
