"""What is free on each node while only the jobs are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rllib_configs.snapshot import SiteNode
from tune_jobs.site.placing import Units, in_all


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
