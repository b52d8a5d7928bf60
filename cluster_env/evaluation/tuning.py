"""Policies with a number, and the best choice of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.spec import get_heuristic, spec_of
from cluster_env.core.world import World
from cluster_env.evaluation.comparison import PolicyGroup, compare_policies
from cluster_env.evaluation.metrics import get_metric

K = TypeVar("K")
C = TypeVar("C")


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


def tuned_numbers(heuristic: str, world: World) -> tuple[str, ...]:
    """The numbers that are tried for a heuristic; none if it takes none, or has one already."""
    known = spec_of(world).heuristics
    return known.get(heuristic).numbers if heuristic in known.names() else ()


def choose(candidates: Mapping[K, C], score: Callable[[C], float]) -> K:
    """The key of the candidate with the lowest score; the first of equals, NaN after all others.

    The score is asked once for each: never on jobsets that results are reported on.
    """

    def rank(key: K) -> float:
        value = score(candidates[key])
        # NaN is below and above nothing, so that min() would take it where it comes first.
        return float("inf") if np.isnan(value) else value

    return min(candidates, key=rank)


def rank_on(
    jobsets: Sequence[JobSet], world: World, *, metric: str | None = None, warmup: int = 0
) -> Callable[[Policy], float]:
    """Scores policies by the mean of a metric on jobsets, lower for a better one.

    The jobsets are never those that results are reported on. The metric is by default the world's
    headline; the warm-up is that of what is measured, so that what is chosen suits it.
    """
    name = metric or spec_of(world).headline

    def rank(policy: Policy) -> float:
        group = PolicyGroup(policy.name, (policy,))
        (result,) = compare_policies([group], jobsets, world, also=[name], warmup=warmup)
        return get_metric(name).rank(result.mean(name))

    return rank


def tune(
    heuristic: str,
    jobsets: Sequence[JobSet],
    world: World,
    *,
    metric: str | None = None,
    warmup: int = 0,
) -> Tuned:
    """The best number of a heuristic by `rank_on`.

    Raises:
        InputError: if the heuristic takes no number.
    """
    numbers = tuned_numbers(heuristic, world)
    if not numbers:
        known = spec_of(world).heuristics
        tuned = [name for name in known.names() if known.get(name).numbers]
        raise InputError(f"'{heuristic}' has no parameter to tune; {' and '.join(tuned)} have one")
    policies = {number: get_heuristic(f"{heuristic}:{number}", world) for number in numbers}
    number = choose(policies, rank_on(jobsets, world, metric=metric, warmup=warmup))
    return Tuned(f"{heuristic}*({number})", f"{heuristic}:{number}", policies[number])
