"""The registration of the world of heterogeneous, elastic nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cluster_env.worlds.panda.objectives  # noqa: F401  enters the paper's rewards
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import (
    Axis,
    Environments,
    Presentation,
    Tools,
    Training,
    Value,
    WorldSpec,
)
from cluster_env.task import Task
from cluster_env.worlds.panda.features import proposals
from cluster_env.worlds.panda.heuristics import HEURISTICS, weighted_policy
from cluster_env.worlds.panda.workloads import WORKLOADS
from cluster_env.worlds.panda.world import Panda


def columns(task: Task) -> dict[str, Value]:
    """The nodes and how long they stay, the load, and whether the mix drifts."""
    world: Any = task.world
    workload: Any = task.workload
    return {
        "nodes": world.nodes.num_nodes,
        "cores": int(world.nodes.column("cores").sum()),
        "load": getattr(workload, "load", float("nan")),
        "drift": getattr(workload, "drift", 0.0),
        "node_stays": workload.supply.stays,
    }


def describe(columns: Mapping[str, Any]) -> str:
    """``16 nodes with 160 cores, which stay 200 steps; the mix drifts``."""
    words = f"{int(float(columns['nodes'])):,} nodes with {int(float(columns['cores'])):,} cores"
    if float(columns["node_stays"]):
        words += f", which stay {float(columns['node_stays']):g} steps"
    return words + ("; the mix drifts" if float(columns["drift"]) else "")


def words(task: Task) -> str:
    """``load 70%``."""
    workload: Any = task.workload
    return f"load {workload.load:.0%}" if hasattr(workload, "load") else type(workload).__name__


def warm(world: Panda, jobsets: Sequence[JobSet]) -> None:
    """Reads the plans of a state, as networks of agents do."""
    size = int(world.state_space.shape[0])
    proposals(np.zeros((1, size), np.int32), world.observed + world.held)


SPEC = WorldSpec(
    world=Panda,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=tuple(name for name in HEURISTICS.names() if name != "random"),
    metrics=(
        *("completion_time", "wait", "run_time", "longest_wait", "slowdown"),
        *("flow_rate", "utilization", "class_deviation", "jain_index", "valid"),
    ),
    side_metrics={"utilization": 0.1, "longest_wait": 0.25, "class_deviation": 0.25},
    presentation=Presentation(
        columns=columns,
        describe=describe,
        words=words,
        axis=Axis("workload.load", "load {:.0%}".format),
    ),
    variants={"hybrid": {"hybrid": 0.5}, "its end": {"max_time": 40}},
    environments=Environments(agents=True),
    training=Training(
        objective="completion_time",
        transfers=(
            *("nodes", "collision", "observed", "held", "reach"),
            *("patience", "rounds", "hybrid", "max_time"),
        ),
    ),
    tools=Tools(warm=warm, bound=weighted_policy),
)
