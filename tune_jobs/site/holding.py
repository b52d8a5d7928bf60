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
    nothing = (0, 0, 0)
    all_was, all_held = _by_node(before), _by_node(now)
    leaving = {node for job in now.values() if job.completing for node in job.nodes}
    changed = []
    for node in nodes:
        was, held = all_was.get(node.name, nothing), all_held.get(node.name, nothing)
        there = (node.processors, node.memory, node.gpus)
        processors, memory, gpus = (
            min(max(free + before - now, 0), most)
            for free, before, now, most in zip(node.free, was, held, there, strict=True)
        )
        if node.name in leaving:
            processors = 0
        node = replace(node, free_processors=processors, free_memory=memory, free_gpus=gpus)
        changed.append(node)
    return tuple(changed)


def _by_node(holdings: Holdings) -> dict[str, Units]:
    """What jobs hold on each node."""
    parts: dict[str, list[Units]] = {}
    for job in holdings.values():
        for k, node in enumerate(job.nodes):
            share = [(units + k) // len(job.nodes) for units in job.units]  # sums up to all
            parts.setdefault(node, []).append((share[0], share[1], share[2]))
    return {node: in_all(shares) for node, shares in parts.items()}
