"""Where jobsets come from: a workload is a distribution over jobsets."""

from cluster_env.workloads.workload import (
    DividedWorkload,
    RecordedWorkload,
    Workload,
    num_disjoint,
    part_of,
    sample_jobsets,
)

__all__ = [
    "DividedWorkload",
    "RecordedWorkload",
    "Workload",
    "num_disjoint",
    "part_of",
    "sample_jobsets",
]
