"""Policies that nobody trained."""

from cluster_env.heuristics.policies import HEURISTICS, get_heuristic

__all__ = ["HEURISTICS", "get_heuristic"]
