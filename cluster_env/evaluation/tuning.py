"""Policies with a number, and the best choice of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.world import World, get_heuristic, kind_of
from cluster_env.evaluation.comparison import PolicyGroup, best, compare_policies


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
    known = kind_of(world).heuristics
    return known.get(heuristic).numbers if heuristic in known.names() else ()


def choose(
    policies: Mapping[str, Policy],
    jobsets: Sequence[JobSet],
    world: World,
    *,
    metric: str | None = None,
    warmup: int = 0,
) -> str:
    """The name of the policy with the best mean; the first of equals.

    Args:
        policies: what to choose from, by name.
        jobsets: validation jobsets: never those that results are reported on.
        world: see `evaluate`.
        metric: name of the metric whose mean decides, by default the world's headline.
        warmup: see `summarize`: what is chosen suits what is measured.
    """
    metric = metric or kind_of(world).headline
    groups = [PolicyGroup(name, (policy,)) for name, policy in policies.items()]
    results = compare_policies(groups, jobsets, world, also=[metric], warmup=warmup)
    return best(results, metric).name


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
        jobsets: see `choose`, as for the other arguments.
        world: see there.
        metric: see there.
        warmup: see there.

    Raises:
        InputError: if the heuristic takes no number.
    """
    numbers = tuned_numbers(heuristic, world)
    if not numbers:
        known = kind_of(world).heuristics
        tuned = [name for name in known.names() if known.get(name).numbers]
        raise InputError(f"'{heuristic}' has no number to tune; {' and '.join(tuned)} have")
    specs = [f"{heuristic}:{number}" for number in numbers]
    choices = {spec: get_heuristic(spec, world) for spec in specs}
    spec = choose(choices, jobsets, world, metric=metric, warmup=warmup)
    return Tuned(f"{heuristic}*({spec.partition(':')[2]})", spec, choices[spec])
