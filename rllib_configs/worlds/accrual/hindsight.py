"""What policies earn on small jobsets, beside what nobody can beat who knows all arrivals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.objectives.utility import final_utility
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.accrual.heuristics import AccrualPolicy
from cluster_env.worlds.accrual.optimum import UtilityBound, utility_bound
from cluster_env.worlds.accrual.rules import Rule
from rllib_configs.worlds.accrual.servers import Setting, learn_values

__all__ = [
    "UtilityBound",
    "bound_of",
    "earned",
    "learned_rulebase",
    "small_jobsets",
    "unseen_jobsets",
]


def unseen_jobsets(setting: Setting) -> list[JobSet]:
    """The arrivals that policies are measured on, of each of the setting's experiments."""
    workload = setting.workload(setting.steps)
    return sample_jobsets(workload, setting.seed, Split.HELD_OUT, range(setting.experiments))


def small_jobsets(setting: Setting, window: int, count: int) -> list[JobSet]:
    """Unseen jobsets of so many steps, those without jobs left out."""
    drawn = unseen_jobsets(replace(setting, steps=window, experiments=count))
    return [jobset for jobset in drawn if jobset.num_jobs]


def bound_of(jobset: JobSet, setting: Setting, time_limit_s: float) -> UtilityBound:
    """What nobody can beat on a jobset; see `utility_bound`."""
    return utility_bound(jobset, setting.world, time_limit_s=time_limit_s)


def learned_rulebase(setting: Setting, name: str) -> Policy:
    """A policy that goes by the mean of the rulebases that the setting's servers learn."""
    learned = tuple(learn_values(setting, "both").p.mean(axis=0).tolist())
    return AccrualPolicy(setting.world, name, Rule("best_fit", "value"), parameters=learned)


def earned(policy: Policy, jobsets: Sequence[JobSet], setting: Setting) -> NDArray[np.float64]:
    """Utility of a policy on each jobset, float64 ``(jobsets,)``."""
    schedule = evaluate(policy, jobsets, setting.world, run_seed=setting.seed)
    utility = np.bincount(schedule.episode, final_utility(schedule), len(jobsets))
    return utility.astype(np.float64, copy=False)
