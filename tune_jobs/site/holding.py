"""What is free on each node while only the jobs are asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from cluster_env.core.snapshot import SiteNode
from tune_jobs.site.placing import Units, in_all

MOST_NODES = 100_000

_NAME = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
_PIECE = re.compile(r"\[([^\]]*)\]|([^\[]+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True)
class Holding:
    """What a job holds, in all, and on which nodes; whether it has ended and is cleaned up."""

    nodes: tuple[str, ...]
    units: Units
    completing: bool


Holdings = Mapping[str, Holding]
"""By the number of the job."""


def free_now(nodes: tuple[SiteNode, ...], before: Holdings, now: Holdings) -> tuple[SiteNode, ...]:
    """Nodes with what is free there now.

    A job of several nodes is believed to hold the same on each, as nobody says more in a line. What
    no job is seen to hold (others' jobs may be hidden) stays as it was. No job starts on a node
    that another has not left yet.

    Args:
        nodes: as they were.
        before: what jobs held then.
        now: what they hold.
    """
    was, held = _by_node(before), _by_node(now)
    leaving = {node for job in now.values() if job.completing for node in job.nodes}
    return tuple(_with_free(node, was, held, node.name in leaving) for node in nodes)


def _with_free(
    node: SiteNode, was: Mapping[str, Units], held: Mapping[str, Units], leaving: bool
) -> SiteNode:
    nothing = (0, 0, 0)
    there = (node.processors, node.memory, node.gpus)
    processors, memory, gpus = (
        min(max(free + before - now, 0), most)
        for free, before, now, most in zip(
            node.free, was.get(node.name, nothing), held.get(node.name, nothing), there, strict=True
        )
    )
    return replace(
        node,
        free_processors=0 if leaving else processors,
        free_memory=memory,
        free_gpus=gpus,
    )


def _by_node(holdings: Holdings) -> dict[str, Units]:
    """What jobs hold on each node."""
    parts: dict[str, list[Units]] = {}
    for job in holdings.values():
        for k, node in enumerate(job.nodes):
            share = [(units + k) // len(job.nodes) for units in job.units]  # sums up to all
            parts.setdefault(node, []).append((share[0], share[1], share[2]))
    return {node: in_all(shares) for node, shares in parts.items()}


@lru_cache(maxsize=1 << 16)
def node_names(text: str) -> tuple[str, ...]:
    """Names in a list of Slurm's: ``gpu[01-03,7],login`` are five.

    Raises:
        ValueError: if it is none, or names more than `MOST_NODES`.
    """
    names: list[str] = []
    place = 0
    while place < len(text):
        found = _NAME.match(text, place)
        if not found or not found[0] or text[found.end() : found.end() + 1] not in ("", ","):
            raise ValueError("a list of nodes has names, separated by commas")
        pieces = [_choices(*piece) for piece in _PIECE.findall(found[0])]
        count = len(names)
        for piece in pieces:
            count = max(count, 1) * len(piece)
        if count > MOST_NODES:
            raise ValueError(f"a list of nodes has more than {MOST_NODES} names")
        names += ("".join(parts) for parts in product(*pieces))
        place = found.end() + 1
    return tuple(names)


def _choices(ranges: str, plain: str) -> list[str]:
    if plain:
        return [plain]
    found = []
    for part in ranges.split(","):
        numbers = _RANGE.fullmatch(part)
        if not numbers:
            raise ValueError("a range of nodes is no range")
        first, last = numbers[1], numbers[2] or numbers[1]
        if int(last) - int(first) > MOST_NODES:
            raise ValueError(f"a list of nodes has more than {MOST_NODES} names")
        found += [str(k).zfill(len(first)) for k in range(int(first), int(last) + 1)]
    return found
