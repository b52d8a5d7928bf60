"""Where jobsets come from: a workload is a distribution over jobsets."""

from cluster_env.workloads.bimodal import BimodalWorkload
from cluster_env.workloads.workload import Workload, sample_jobsets

__all__ = ["BimodalWorkload", "Workload", "sample_jobsets"]
