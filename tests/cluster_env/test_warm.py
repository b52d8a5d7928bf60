"""Warming up leaves nothing to compile."""

import importlib
import pkgutil
from types import ModuleType

import cluster_env
from cluster_env import warm

# Those that only compiled functions call, which hold copies of their own.
CALLED_BY_COMPILED = {
    "cluster_env.objectives.utility.unit_utility",
    "cluster_env.workloads.histories._learn",
    "cluster_env.worlds.accrual.td.learn",
    *(f"cluster_env.worlds.accrual.values.{name}" for name in ("value_of", "write_gradient")),
}


def not_compiled(package: ModuleType) -> set[str]:
    """Compiled functions of a package that have never been called; those inlined never are."""
    names = [
        module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    ]
    found = {}
    for name in names:
        for thing in vars(importlib.import_module(name)).values():
            if hasattr(thing, "targetoptions"):
                found[f"{thing.__module__}.{thing.__name__}"] = thing
    assert found
    return {
        name
        for name, function in found.items()
        if not function.signatures and not _is_inlined(function.targetoptions)
    }


def _is_inlined(options: dict) -> bool:
    return options.get("inline") == "always" or options.get("forceinline", False)


def test_every_compiled_function_of_the_world_is_called():
    warm.main()
    assert not_compiled(cluster_env) <= CALLED_BY_COMPILED
