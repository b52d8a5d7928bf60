"""Gymnasium's view of the simulators."""

from cluster_env.envs.checker import CheckError, check_cluster_env
from cluster_env.envs.cluster import ClusterEnv
from cluster_env.envs.registration import ENVIRONMENTS, register_environments
from cluster_env.envs.vector import ClusterVectorEnv

__all__ = [
    "ENVIRONMENTS",
    "CheckError",
    "ClusterEnv",
    "ClusterVectorEnv",
    "check_cluster_env",
    "register_environments",
]
