"""Heterogeneous, elastic nodes, which an agent for each consumer collects (PANDA)."""

from cluster_env.worlds.panda.spec import SPEC
from cluster_env.worlds.panda.world import Panda

__all__ = ["SPEC", "Panda"]
