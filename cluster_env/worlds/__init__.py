"""Worlds: what schedulers act in, each in a folder of its own.

Whoever needs a world by name imports this package, which registers all that come with metasched.
A world of one's own is entered into `cluster_env.core.world.WORLDS` from its own package.
"""

from pathlib import Path

from cluster_env.core.world import WORLDS, Kind, World, get_heuristic, kind_of
from cluster_env.worlds import accrual, deeprm, hpc, panda

if "deeprm" not in WORLDS.names():
    WORLDS.register("deeprm")(deeprm.KIND)
    WORLDS.register("hpc")(hpc.KIND)
    WORLDS.register("accrual")(accrual.KIND)
    WORLDS.register("panda")(panda.KIND)

get_kind = WORLDS.get


def shipped_policies() -> dict[str, Path]:
    """Folders of the trained policies that come with all worlds, by name; see `Kind.policies`."""
    kinds = (get_kind(name) for name in WORLDS.names())
    return {name: folder for kind in kinds for name, folder in kind.policies.items()}


def policy_in(folder: Path) -> str:
    """What messages call the policy in a folder: its name if it comes with a world, or the path."""
    names = [name for name, shipped in shipped_policies().items() if shipped == folder]
    return names[0] if names else str(folder)


__all__ = [
    "WORLDS",
    "Kind",
    "World",
    "get_heuristic",
    "get_kind",
    "kind_of",
    "policy_in",
    "shipped_policies",
]
