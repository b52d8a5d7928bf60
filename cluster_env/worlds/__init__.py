"""Worlds: what schedulers act in, each in a folder of its own.

Whoever needs a world by name imports this package, which registers all that come with metasched.
A world of one's own is entered into `cluster_env.core.spec.WORLDS` from its own package.
"""

import logging
from functools import cache
from pathlib import Path

from cluster_env.core.spec import WORLDS, WorldSpec, get_heuristic, spec_of
from cluster_env.core.world import World
from cluster_env.worlds import accrual, deeprm, hpc, panda

if "deeprm" not in WORLDS.names():
    WORLDS.register("deeprm")(deeprm.SPEC)
    WORLDS.register("hpc")(hpc.SPEC)
    WORLDS.register("accrual")(accrual.SPEC)
    WORLDS.register("panda")(panda.SPEC)

logger = logging.getLogger(__name__)

get_spec = WORLDS.get


def shipped_policies() -> dict[str, Path]:
    """Folders of the trained policies that come with all worlds, by name."""
    specs = (get_spec(name) for name in WORLDS.names())
    return {name: folder for spec in specs for name, folder in spec.training.policies.items()}


def present_name(name: str) -> str:
    """The name that a policy or preset has now; any other text stays as it is.

    A warning tells whoever uses an old name, once.
    """
    for world in WORLDS.names():
        renamed = get_spec(world).training.renamed
        if name in renamed:
            present, remark = renamed[name]
            _warn_once(f"{name} is now called {present}: {remark}")
            return present
    return name


@cache
def _warn_once(words: str) -> None:
    logger.warning("%s", words)


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
    "present_name",
    "shipped_policies",
    "spec_of",
]
