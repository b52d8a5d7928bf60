"""The registration of the world of batch-scheduled machines."""

from collections.abc import Mapping
from typing import Any

from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.core.world import Axis, Kind, Value
from cluster_env.workloads import part_of
from cluster_env.worlds.hpc.heuristics import HEURISTICS
from cluster_env.worlds.hpc.observations import OBSERVATIONS
from cluster_env.worlds.hpc.promises import PROMISES
from cluster_env.worlds.hpc.workloads import WORKLOADS, TraceWorkload
from cluster_env.worlds.hpc.world import HPC


def _columns(task: Task) -> dict[str, Value]:
    part: Any = part_of(task.workload, Split.HELD_OUT)
    world: Any = task.world
    return {
        "trace": task.workload.name if isinstance(task.workload, TraceWorkload) else "",
        "processors": world.processors,
        "jobset_size": getattr(part, "jobs", 0),
        "backfilling": world.backfilling,
    }


def _describe(columns: Mapping[str, Any]) -> str:
    """``256 processors, 256 jobs each, rules with easy backfilling``."""
    size = int(float(columns["jobset_size"]))
    jobs = f"{size:,} jobs each" if size else "all jobs"
    return (
        f"{int(float(columns['processors'])):,} processors, {jobs}, rules with "
        f"{columns['backfilling']} backfilling where they name none"
    )


def _words(task: Task) -> str:
    """``load 90%``, ``trace theta.swf.gz``."""
    workload: Any = task.workload
    if isinstance(workload, TraceWorkload):
        return f"trace {workload.name}"
    load = getattr(workload, "load", 0)
    return f"load {load:.0%}" if load else type(workload).__name__


def _warm() -> None:
    from cluster_env.worlds.hpc.warm import warm  # which needs the registration

    warm()


KIND = Kind(
    world=HPC,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=("saf", "sjf", "wspt", "fcfs", "saf-strict", "wspt-strict"),
    metrics=(
        *("bounded_slowdown", "utilization", "wait", "longest_wait", "slowdown"),
        *("completion_time", "makespan"),
    ),
    observations=OBSERVATIONS,
    axis=Axis("workload.load", "load {:.0%}".format),
    columns=_columns,
    describe=_describe,
    words=_words,
    environments={
        "HPC-v0": {
            "world": {"kind": "hpc"},
            "objective": "bounded_slowdown",
        },
    },
    promises=PROMISES,
    warm=_warm,
    price={"utilization": 0.1, "wait": 0.25, "longest_wait": 1.0},
    transfers=("processors", "queue", "backfilling", "kill_at_estimate", "max_time"),
)
