"""Worlds: what schedulers act in, each in a folder of its own.

Whoever needs a world by name imports this package, which registers all that come with metasched.
A world of one's own is entered into `cluster_env.core.world.WORLDS` from its own package.
"""

from cluster_env.core.world import WORLDS, Kind, World, get_heuristic, kind_of
from cluster_env.worlds import accrual, deeprm, hpc, panda

if "deeprm" not in WORLDS.names():
    WORLDS.register("deeprm")(deeprm.KIND)
    WORLDS.register("hpc")(hpc.KIND)
    WORLDS.register("accrual")(accrual.KIND)
    WORLDS.register("panda")(panda.KIND)

get_kind = WORLDS.get

__all__ = ["WORLDS", "Kind", "World", "get_heuristic", "get_kind", "kind_of"]
