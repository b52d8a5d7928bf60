"""Heterogeneous, elastic nodes, which an agent for each consumer collects (PANDA)."""

from cluster_env.worlds.panda.kind import KIND
from cluster_env.worlds.panda.world import Panda

__all__ = ["KIND", "Panda"]
