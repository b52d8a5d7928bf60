"""Objectives by name, and families of them."""

from collections.abc import Callable

from cluster_env.core.objective import Objective
from cluster_env.core.registry import Registry

OBJECTIVES: Registry[Objective] = Registry("objective")
"""Objectives by name; a registration here is all that an objective and its metric need."""

OBJECTIVE_FAMILIES: Registry[Callable[[str], Objective]] = Registry("family of objectives")
"""Objectives with parameters, by the word before the bracket.

What is registered as ``late`` is given whole names such as ``late(3, 0.5)``, and returns an
objective of that name or raises an `InputError`.
"""


def find_objective(name: str) -> Objective | None:
    """The objective of that name in `OBJECTIVES` or of a family; None if there is none.

    Raises:
        InputError: if a family cannot read the parameters.
    """
    if name in OBJECTIVES.names():
        return OBJECTIVES.get(name)
    family = name.partition("(")[0].strip()
    return OBJECTIVE_FAMILIES.get(family)(name) if family in OBJECTIVE_FAMILIES.names() else None
