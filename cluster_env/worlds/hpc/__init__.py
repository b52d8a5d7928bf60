"""Batch scheduling of rigid jobs on a machine of any size, event by event, in seconds."""

from cluster_env.worlds.hpc.spec import SPEC
from cluster_env.worlds.hpc.world import HPC

__all__ = ["HPC", "SPEC"]
