"""Where jobsets come from: a workload is a distribution over jobsets."""

from cluster_env.workloads.workload import (
    DividedWorkload,
    MeasuredWorkload,
    RecordedPart,
    RecordedWorkload,
    Workload,
    num_disjoint,
    part_of,
    sample_jobsets,
)

__all__ = [
    "DividedWorkload",
    "MeasuredWorkload",
    "RecordedPart",
    "RecordedWorkload",
    "Workload",
    "num_disjoint",
    "part_of",
    "sample_jobsets",
]
