"""Rewards and metrics by name, with the identity that ties them."""

from cluster_env.objectives.classes import class_slowdown, read_class_weights
from cluster_env.objectives.mixtures import get_objective, mixture, read_mixture
from cluster_env.objectives.objective import OBJECTIVES, LateCost, Objective

__all__ = [
    "OBJECTIVES",
    "LateCost",
    "Objective",
    "class_slowdown",
    "get_objective",
    "mixture",
    "read_class_weights",
    "read_mixture",
]
