"""Rewards and metrics by name, with the identity that ties them."""

from cluster_env.objectives.mixtures import get_objective, mixture, read_mixture
from cluster_env.objectives.objective import OBJECTIVES, LateCost, Objective

__all__ = ["OBJECTIVES", "LateCost", "Objective", "get_objective", "mixture", "read_mixture"]
