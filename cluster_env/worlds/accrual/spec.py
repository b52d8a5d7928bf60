"""The registration of the world of utility accrual."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.observation import features_observation
from cluster_env.core.registry import Registry
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
from cluster_env.worlds.accrual.heuristics import HEURISTICS
from cluster_env.worlds.accrual.values import RULEBASE, RULES, mean_values
from cluster_env.worlds.accrual.workloads import WORKLOADS
from cluster_env.worlds.accrual.world import Accrual


def columns(task: Task) -> dict[str, Value]:
    """The machine, what it may do, and how jobs lose value."""
    world: Any = task.world
    return {
        "machines": world.machines,
        "processors": world.processors,
        "projects": world.projects,
        "preempt": world.preempt,
        "squeeze": world.squeeze,
        "time_utility": getattr(task.workload, "utility", ""),
    }


def describe(columns: Mapping[str, Any]) -> str:
    """``24 processors, linear utility, preemption and squeezing``."""
    named = (("preempt", "preemption"), ("squeeze", "squeezing"))
    allowed = [word for key, word in named if str(columns[key]) == "True"]
    # Tables of older versions have no columns of these names.
    machines, projects = (int(columns.get(name, 1)) for name in ("machines", "projects"))
    return (
        f"{f'{machines:,} machines of ' if machines > 1 else ''}"
        f"{int(float(columns['processors'])):,} processors, {columns['time_utility']} utility, "
        f"{' and '.join(allowed) or 'neither preemption nor squeezing'}"
        f"{f', {projects:,} projects' if projects > 1 else ''}"
    )


def words(task: Task) -> str:
    """``0.1 jobs a step``."""
    workload: Any = task.workload
    if hasattr(workload, "rate"):
        return f"{workload.rate:g} jobs a step"
    return type(workload).__name__


def warm(world: Accrual, jobsets: Sequence[JobSet]) -> None:
    """Computes values of states as networks of values do."""
    mean_values(RULEBASE, np.zeros((1, len(RULES))), np.zeros((1, 3), np.float32), np.empty(1))


SPEC = WorldSpec(
    world=Accrual,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=("none", "aggressive", "density", "edf", "dasa", "lbesa"),
    metrics=("utility", "utilization", "wait", "longest_wait", "slowdown", "completion_time"),
    variants={
        "by machine": {"machines": 3, "allocation": "machine"},
        "by job": {"machines": 3, "allocation": "job"},
        "projects": {"projects": 2},
        "projects on machines": {"projects": 2, "machines": 2},
        "its end": {"max_time": 40},
    },
    presentation=Presentation(
        columns=columns,
        describe=describe,
        words=words,
        axis=Axis("workload.rate", "{:g} jobs a step".format),
    ),
    environments=Environments(
        ids={"Accrual-v0": {"world": {"kind": "accrual"}, "objective": "utility"}},
        observations=Registry(
            "observation",
            {"candidates": partial(features_observation, items="candidates", low=0, high=1)},
        ),
        loses_jobs=lambda world: bool(world.drop_expired),
    ),
    training=Training(
        objective="utility",
        transfers=(
            *("processors", "longest", "candidates", "max_time"),
            *("machines", "allocation", "projects"),
        ),
    ),
    tools=Tools(warm=warm),
)
