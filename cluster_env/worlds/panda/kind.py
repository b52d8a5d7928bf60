"""The registration of the world of heterogeneous, elastic nodes."""

from collections.abc import Mapping
from typing import Any

import cluster_env.worlds.panda.objectives  # noqa: F401  enters the paper's rewards
from cluster_env.core.jobs import JobSet
from cluster_env.core.task import Task
from cluster_env.core.world import Axis, Kind, Value
from cluster_env.workloads.log import LogWorkload
from cluster_env.worlds.panda.heuristics import HEURISTICS
from cluster_env.worlds.panda.plain import PlainCloud
from cluster_env.worlds.panda.workloads import WORKLOADS
from cluster_env.worlds.panda.world import Panda


def _columns(task: Task) -> dict[str, Value]:
    world: Any = task.world
    workload: Any = task.workload
    return {
        "nodes": world.nodes.num_nodes,
        "cores": int(world.nodes.of("cores").sum()),
        "load": getattr(workload, "load", float("nan")),
        "drift": getattr(workload, "drift", 0.0),
        "node_stays": workload.supply.stays,
    }


def _describe(columns: Mapping[str, Any]) -> str:
    """``16 nodes with 160 cores, which stay 200 steps; the mix drifts``."""
    words = f"{int(float(columns['nodes'])):,} nodes with {int(float(columns['cores'])):,} cores"
    if float(columns["node_stays"]):
        words += f", which stay {float(columns['node_stays']):g} steps"
    return words + ("; the mix drifts" if float(columns["drift"]) else "")


def _words(task: Task) -> str:
    """``load 70%``, ``trace theta.swf.gz``."""
    workload: Any = task.workload
    if isinstance(workload, LogWorkload):
        return f"trace {workload.name}"
    return f"load {workload.load:.0%}" if hasattr(workload, "load") else type(workload).__name__


def _plain(world: Panda, jobset: JobSet) -> PlainCloud:
    return PlainCloud(world, jobset)


def _warm() -> None:
    from cluster_env.worlds.panda.warm import warm  # which needs the registration

    warm()


KIND = Kind(
    world=Panda,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=tuple(name for name in HEURISTICS.names() if name != "random"),
    metrics=(
        *("completion_time", "wait", "run_time", "longest_wait", "slowdown"),
        *("flow_rate", "utilization", "class_deviation", "jain_index", "valid"),
    ),
    objective="completion_time",
    price={"utilization": 0.1, "longest_wait": 0.25, "class_deviation": 0.25},
    axis=Axis("workload.load", "load {:.0%}".format),
    columns=_columns,
    describe=_describe,
    words=_words,
    warm=_warm,
    plain=_plain,
    agents=True,
    transfers=(
        *("nodes", "collision", "on_loss", "pace", "across_racks", "across_regions", "strict"),
        *("observed", "held", "reach", "patience", "rounds", "hybrid", "max_time"),
    ),
)
