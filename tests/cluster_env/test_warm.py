"""Warming up leaves nothing to compile."""

import importlib
import pkgutil
from types import ModuleType

import cluster_env
from cluster_env import warm

# Those that only compiled functions call, which hold copies of their own.
CALLED_BY_COMPILED = {
    "cluster_env.worlds.deeprm.features._describe_slots",
    "cluster_env.worlds.deeprm.features._describe_classes",
    "cluster_env.worlds.deeprm.features._describe_context",
    *(f"cluster_env.worlds.hpc.events.{name}" for name in ("expect", "forget", "pop", "push")),
    "cluster_env.worlds.hpc.events.reserve",
    "cluster_env.worlds.hpc.orders.moving_score",
    *(
        f"cluster_env.worlds.hpc.passes.{name}"
        for name in ("backfill", "begin", "enqueue", "plan_all", "rank", "start_fitting")
    ),
    "cluster_env.worlds.hpc.passes.start_in_order",
}
"""A function of the HPC world whose name begins with an underscore is of this sort, too."""


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
        if not function.signatures and function.targetoptions.get("inline") != "always"
    }


def test_every_compiled_function_of_the_world_is_called():
    warm.main()
    left = {
        name
        for name in not_compiled(cluster_env)
        if not name.startswith("cluster_env.worlds.hpc.") or "._" not in name
    }
    assert left <= CALLED_BY_COMPILED
