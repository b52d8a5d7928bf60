"""The registration of the world of utility accrual."""

from collections.abc import Mapping
from typing import Any

from cluster_env.core.jobs import JobSet
from cluster_env.core.task import Task
from cluster_env.core.world import Axis, Kind, Value
from cluster_env.workloads.log import LogWorkload
from cluster_env.worlds.accrual.heuristics import HEURISTICS
from cluster_env.worlds.accrual.observations import OBSERVATIONS
from cluster_env.worlds.accrual.plain import PlainServer, smallest
from cluster_env.worlds.accrual.promises import PROMISES
from cluster_env.worlds.accrual.workloads import WORKLOADS
from cluster_env.worlds.accrual.world import Accrual


def _columns(task: Task) -> dict[str, Value]:
    world: Any = task.world
    return {
        "processors": world.processors,
        "preempt": world.preempt,
        "squeeze": world.squeeze,
        "time_utility": getattr(task.workload, "utility", ""),
    }


def _describe(columns: Mapping[str, Any]) -> str:
    """``24 processors, linear utility, preemption and squeezing``."""
    named = (("preempt", "preemption"), ("squeeze", "squeezing"))
    allowed = [word for key, word in named if str(columns[key]) == "True"]
    return (
        f"{int(float(columns['processors'])):,} processors, {columns['time_utility']} utility, "
        f"{' and '.join(allowed) or 'neither preemption nor squeezing'}"
    )


def _words(task: Task) -> str:
    """``0.1 jobs a step``, ``trace theta.swf.gz``."""
    workload: Any = task.workload
    if isinstance(workload, LogWorkload):
        return f"trace {workload.name}"
    if hasattr(workload, "rate"):
        return f"{workload.rate:g} jobs a step"
    return type(workload).__name__


def _plain(world: Accrual, jobset: JobSet) -> PlainServer:
    return PlainServer(world, jobset, smallest)


def _warm() -> None:
    from cluster_env.worlds.accrual.warm import warm  # which needs the registration

    warm()


KIND = Kind(
    world=Accrual,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=("none", "aggressive", "density", "edf", "dasa", "lbesa"),
    metrics=("utility", "utilization", "wait", "longest_wait", "slowdown", "completion_time"),
    observations=OBSERVATIONS,
    axis=Axis("workload.rate", "{:g} jobs a step".format),
    columns=_columns,
    describe=_describe,
    words=_words,
    environments={"Accrual-v0": {"world": {"kind": "accrual"}, "objective": "utility"}},
    promises=PROMISES,
    warm=_warm,
    plain=_plain,
    objective="utility",
    transfers=("processors", "longest", "candidates", "growth", "grow_first", "max_time"),
)
