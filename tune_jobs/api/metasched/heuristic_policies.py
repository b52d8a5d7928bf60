"""The rules that a learned policy is compared with."""

from collections.abc import Mapping

from cluster_env.core.policy import Policy
from cluster_env.core.spec import build_world, spec_of
from cluster_env.core.world import World


def heuristics(world: World | str | Mapping[str, object] = "deeprm") -> dict[str, Policy]:
    """All heuristics of a world by name, those of a user's own included.

    Heuristics that take a number have their usual one; ``get_heuristic("tetris:0.002", world)``
    gives it another, and `compare` tunes it.

    >>> schedule = evaluate(heuristics(world)["sjf"], jobsets, world)

    Args:
        world: a world, the name of its kind, or its options, see `build_world`.

    Raises:
        InputError: if there is no such world.
    """
    made = build_world(world)
    registry = spec_of(made).heuristics
    return {name: registry.get(name).make(made, "") for name in registry.names()}
