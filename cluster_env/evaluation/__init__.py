"""From policies and jobsets to schedules, metrics and intervals: one scorer for every policy."""

from cluster_env.evaluation.comparison import PolicyGroup, Result, best, compare_policies, win_rate
from cluster_env.evaluation.guard import (
    MIN_DISJOINT,
    Candidate,
    GuardDecision,
    Judge,
    rank_finishing,
    told_apart,
)
from cluster_env.evaluation.intervals import Estimate
from cluster_env.evaluation.metrics import METRICS, by_size, get_metric, nonnegative_cost
from cluster_env.evaluation.rollouts import concatenate, evaluate
from cluster_env.evaluation.summary import Summary, check_warmup, summarize
from cluster_env.evaluation.tuning import Tuned, choose, rank_on, tune, tuned_numbers
from cluster_env.objectives import Metric

__all__ = [
    "METRICS",
    "MIN_DISJOINT",
    "Candidate",
    "Estimate",
    "GuardDecision",
    "Judge",
    "Metric",
    "PolicyGroup",
    "Result",
    "Summary",
    "Tuned",
    "best",
    "by_size",
    "check_warmup",
    "choose",
    "compare_policies",
    "concatenate",
    "evaluate",
    "get_metric",
    "nonnegative_cost",
    "rank_finishing",
    "rank_on",
    "summarize",
    "told_apart",
    "tune",
    "tuned_numbers",
    "win_rate",
]
