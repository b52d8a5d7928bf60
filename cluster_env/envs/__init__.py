"""Gymnasium's view of the simulators."""

from cluster_env.core.spec import environment_ids
from cluster_env.envs.checker import CheckError, check_cluster_env
from cluster_env.envs.cluster import ClusterEnv
from cluster_env.envs.vector import ClusterVectorEnv

__all__ = ["CheckError", "ClusterEnv", "ClusterVectorEnv", "check_cluster_env", "environment_ids"]
