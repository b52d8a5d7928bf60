"""Rewards by name, with the metrics that follow from them."""

from cluster_env.core.metric import Metric
from cluster_env.core.objective import LateCost, Objective, episode_cost, require_no_finish_gain
from cluster_env.objectives.accrued import UTILITY
from cluster_env.objectives.classes import class_slowdown, read_class_weights
from cluster_env.objectives.mixtures import get_objective, mixture, read_mixture
from cluster_env.objectives.registry import OBJECTIVE_FAMILIES, OBJECTIVES, find_objective
from cluster_env.objectives.standard import is_small  # registers the objectives by name

__all__ = [
    "OBJECTIVES",
    "OBJECTIVE_FAMILIES",
    "UTILITY",
    "LateCost",
    "Metric",
    "Objective",
    "class_slowdown",
    "episode_cost",
    "find_objective",
    "get_objective",
    "is_small",
    "mixture",
    "read_class_weights",
    "read_mixture",
    "require_no_finish_gain",
]
