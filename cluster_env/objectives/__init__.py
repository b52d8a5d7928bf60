"""Rewards and metrics by name, with the identity that ties them."""

from cluster_env.objectives.objective import OBJECTIVES, Objective, get_objective, mixture

__all__ = ["OBJECTIVES", "Objective", "get_objective", "mixture"]
