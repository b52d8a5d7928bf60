"""Worlds: what schedulers act in, each in a folder of its own.

Whoever needs a world by name imports this package, which registers all that come with metasched.
A world of one's own is entered into `cluster_env.core.spec.WORLDS` from its own package.
"""

from pathlib import Path

from cluster_env.core.spec import WORLDS, WorldSpec, get_heuristic, spec_of
from cluster_env.core.world import World
from cluster_env.worlds import accrual, deeprm, graphs, hpc, panda

if "deeprm" not in WORLDS.names():
    WORLDS.register("deeprm")(deeprm.SPEC)
    WORLDS.register("hpc")(hpc.SPEC)
    WORLDS.register("accrual")(accrual.SPEC)
    WORLDS.register("panda")(panda.SPEC)
    WORLDS.register("graphs")(graphs.SPEC)

get_spec = WORLDS.get


def shipped_policies() -> dict[str, Path]:
    """Folders of the trained policies that come with all worlds, by name."""
    specs = (get_spec(name) for name in WORLDS.names())
    return {name: folder for spec in specs for name, folder in spec.training.policies.items()}


def policy_in(folder: Path) -> str:
    """What messages call the policy in a folder: its name if it comes with a world, or the path."""
    names = [name for name, shipped in shipped_policies().items() if shipped == folder]
    return names[0] if names else str(folder)


__all__ = [
    "WORLDS",
    "World",
    "WorldSpec",
    "get_heuristic",
    "get_spec",
    "policy_in",
    "shipped_policies",
    "spec_of",
]
