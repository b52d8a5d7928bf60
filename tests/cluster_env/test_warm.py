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
    "cluster_env.objectives.utility.unit_utility",
    "cluster_env.workloads.histories._learn",
    *(
        f"cluster_env.worlds.accrual.running.{name}"
        for name in (
            *("time_left", "unit_at_end", "begin_job", "enqueue", "settle_work", "preempt_job"),
            *("next_finish", "finish_jobs", "charge", "grow_jobs", "fill_victims"),
        )
    ),
    *(f"cluster_env.worlds.accrual.starting.{name}" for name in ("start_fitting", "drop_expired")),
    *(
        f"cluster_env.worlds.accrual.offers.{name}"
        for name in ("offer", "show_nothing", "take", "server_state")
    ),
    *(
        f"cluster_env.worlds.accrual.events.{name}"
        for name in ("has_room", "begin_episode", "next_instant", "end_episode", "settle")
    ),
    *(f"cluster_env.worlds.accrual.td.{name}" for name in ("learn", "function_of")),
    *(f"cluster_env.worlds.accrual.play.{name}" for name in ("choose", "learn_at")),
    *(f"cluster_env.worlds.accrual.values.{name}" for name in ("value_of", "write_gradient")),
}
"""A function of the accrual world whose name begins with an underscore is of this sort, too."""


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
    left = {
        name
        for name in not_compiled(cluster_env)
        if not name.startswith("cluster_env.worlds.accrual.") or "._" not in name
    }
    assert left <= CALLED_BY_COMPILED
