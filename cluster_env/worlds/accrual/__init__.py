"""Utility-accrual scheduling: jobs lose value with time, and may be squeezed and preempted."""

from cluster_env.worlds.accrual.spec import SPEC
from cluster_env.worlds.accrual.world import Accrual

__all__ = ["SPEC", "Accrual"]
