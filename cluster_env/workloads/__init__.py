"""Where jobsets come from: a workload is a distribution over jobsets."""

from cluster_env.workloads.trace import TraceWorkload
from cluster_env.workloads.trace_file import read_jobs
from cluster_env.workloads.workload import (
    DividedWorkload,
    MeasuredWorkload,
    Workload,
    sample_jobsets,
)

__all__ = [
    "DividedWorkload",
    "MeasuredWorkload",
    "TraceWorkload",
    "Workload",
    "read_jobs",
    "sample_jobsets",
]
