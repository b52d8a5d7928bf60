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

    Args:
        candidates: what to choose from.
        score: is asked once for each; on jobsets, never on those that results are reported on.
    """

    def rank(key: K) -> float:
        value = score(candidates[key])
        # NaN is below and above nothing, so that min() would take it where it comes first.
        return float("inf") if np.isnan(value) else value

    return min(candidates, key=rank)


def rank_on(
    jobsets: Sequence[JobSet], world: World, *, metric: str | None = None, warmup: int = 0
) -> Callable[[Policy], float]:
    """Scores policies by a mean on jobsets, lower for a better one.

    Args:
        jobsets: validation jobsets: never those that results are reported on.
        world: see `evaluate`.
        metric: name of the metric whose mean decides, by default the world's headline.
        warmup: see `summarize`: what is chosen suits what is measured.
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
    """Finds the best number of a heuristic.

    Args:
        heuristic: one with numbers to try.
        jobsets: see `rank_on`, as for the other arguments.
        world: see there.
        metric: see there.
        warmup: see there.

    Raises:
        InputError: if the heuristic takes no number.
    """
    numbers = tuned_numbers(heuristic, world)
    if not numbers:
        known = spec_of(world).heuristics
        tuned = [name for name in known.names() if known.get(name).numbers]
        raise InputError(f"'{heuristic}' has no number to tune; {' and '.join(tuned)} have")
    policies = {number: get_heuristic(f"{heuristic}:{number}", world) for number in numbers}
    number = choose(policies, rank_on(jobsets, world, metric=metric, warmup=warmup))
    return Tuned(f"{heuristic}*({number})", f"{heuristic}:{number}", policies[number])
