"""Heuristics with a number, and the best choice of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.evaluation.comparison import PolicyGroup, best, compare_policies
from cluster_env.evaluation.rollouts import DEFAULT_MAX_TIME
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.heuristics import get_heuristic
from cluster_env.worlds.deeprm.rules import PAPER_RULES, Rules

SWEEPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tetris": ("0.0005", "0.001", "0.002", "0.005", "0.01", "0.05", "0.5"),
        "hold": ("1", "2", "3", "4", "6", "8", "12", "16", "32"),
    }
)
"""The numbers that are tried for each heuristic that takes one."""


@dataclass(frozen=True)
class Tuned:
    """A heuristic with the number that was best on validation jobsets.

    Attributes:
        name: the heuristic's, with the number: ``tetris*(0.002)``; the star says that it was tuned.
        spec: what `get_heuristic` calls it: ``tetris:0.002``.
        policy: the heuristic.
    """

    name: str
    spec: str
    policy: Policy


def tune(
    heuristic: str,
    jobsets: Sequence[JobSet],
    cluster: Cluster,
    rules: Rules = PAPER_RULES,
    *,
    metric: str = "slowdown",
    max_time: int = DEFAULT_MAX_TIME,
    warmup: int = 0,
) -> Tuned:
    """Finds the best number of a heuristic.

    Args:
        heuristic: a key of `SWEEPS`.
        jobsets: validation jobsets: never those that results are reported on.
        cluster: see `evaluate`.
        rules: see there.
        metric: name of the metric whose mean decides; the first of equals wins.
        max_time: see there.
        warmup: see `summarize`: the number is tuned for what is measured.

    Raises:
        InputError: if the heuristic takes no number.
    """
    if heuristic not in SWEEPS:
        raise InputError(f"'{heuristic}' has no number to tune; {' and '.join(SWEEPS)} have")
    specs = [f"{heuristic}:{number}" for number in SWEEPS[heuristic]]
    groups = [PolicyGroup(spec, (get_heuristic(spec, cluster),)) for spec in specs]
    results = compare_policies(
        groups, jobsets, cluster, rules, max_time=max_time, also=[metric], warmup=warmup
    )
    spec = best(results, metric).name
    name = f"{heuristic}*({spec.partition(':')[2]})"
    return Tuned(name, spec, get_heuristic(spec, cluster))
