"""Task graphs: jobs of stages whose tasks run on executors that move between jobs."""

from cluster_env.worlds.graphs.spec import SPEC
from cluster_env.worlds.graphs.world import Graphs

__all__ = ["SPEC", "Graphs"]
