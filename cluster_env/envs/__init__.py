"""Gymnasium's view of the simulators."""

from cluster_env.core.promises import CheckError
from cluster_env.envs.checker import check_cluster_env
from cluster_env.envs.cluster import ClusterEnv
from cluster_env.envs.registration import environment_ids, register_environments
from cluster_env.envs.vector import ClusterVectorEnv

__all__ = [
    "CheckError",
    "ClusterEnv",
    "ClusterVectorEnv",
    "check_cluster_env",
    "environment_ids",
    "register_environments",
]
