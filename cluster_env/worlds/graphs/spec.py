"""The registration of the world of task graphs."""

from collections.abc import Mapping
from typing import Any

from cluster_env.core.spec import (
    Axis,
    Environments,
    Presentation,
    Training,
    Value,
    WorldSpec,
)
from cluster_env.task import Task
from cluster_env.worlds.graphs.heuristics import HEURISTICS
from cluster_env.worlds.graphs.render import draw
from cluster_env.worlds.graphs.views import OBSERVATIONS
from cluster_env.worlds.graphs.workloads import WORKLOADS
from cluster_env.worlds.graphs.world import Graphs


def columns(task: Task) -> dict[str, Value]:
    """The cluster, and how jobs arrive."""
    world: Any = task.world
    workload: Any = task.workload
    return {
        "executors": world.executors,
        "delay_ms": world.delay,
        "graphs": "measured" if world.durations else getattr(workload, "shape", ""),
        "gap_s": getattr(workload, "gap_s", float("nan")),
        "burst": getattr(workload, "burst", 1),
        "shift": getattr(workload, "shift", ""),
    }


def describe(columns: Mapping[str, Any]) -> str:
    """``50 executors, measured graphs, a job every 25 s``; of shifted jobs their shift."""
    bursts = f" in bursts of {int(columns['burst']):,}" if int(columns["burst"]) > 1 else ""
    graphs = columns["graphs"] or "generated"
    return f"{int(columns['executors']):,} executors, {graphs} graphs, {_jobs(columns)}{bursts}"


def _jobs(columns: Mapping[str, Any]) -> str:
    """``a job every 25 s``, ``shift: bursts``."""
    shift = columns.get("shift")
    return f"shift: {shift}" if shift else f"a job every {float(columns['gap_s']):g} s"


SPEC = WorldSpec(
    world=Graphs,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=("weighted_fair", "fair", "sjf_cp", "fifo"),
    metrics=(
        *("completion_time", "completion_p95", "longest_completion", "least_completion"),
        *("completion_time_narrow", "completion_time_medium", "completion_time_wide"),
        *("slowdown", "makespan", "utilization"),
    ),
    side_metrics={"utilization": 0.1, "completion_p95": 0.25, "longest_completion": 0.25},
    variants={
        "no delay": {"delay": 0, "spread": 0.0},
        "few executors": {"executors": 3, "candidates": 1},
        "its end": {"max_time": 60_000},
    },
    presentation=Presentation(
        columns=columns,
        describe=describe,
        words=lambda task: _jobs(columns(task)),
        time=lambda time: f"{time / 1000:,.1f} s",
        time_unit="ms",
        axis=Axis("workload.gap_s", "a job every {:g} s".format),
    ),
    environments=Environments(
        ids={
            "Graphs-v0": {
                "world": {"kind": "graphs"},
                "workload": {"jobs": 50},
                "objective": "completion_time",
            }
        },
        observations=OBSERVATIONS,
        draw=draw,
    ),
    training=Training(
        objective="completion_time",
        transfers=("executors", "delay", "warmup", "spread", "durations", "stages", "max_time"),
    ),
)
