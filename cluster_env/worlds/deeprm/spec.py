"""The registration of DeepRM's world."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import Registry
from cluster_env.core.seeding import Split
from cluster_env.core.spec import (
    Axis,
    CliOption,
    Environments,
    Futures,
    Optimum,
    Presentation,
    Tools,
    Training,
    Value,
    WorkloadSpec,
    WorldSpec,
)
from cluster_env.task import Task
from cluster_env.workloads import part_of
from cluster_env.worlds.deeprm.clairvoyant import (
    DEFAULT_TIME_LIMIT_S,
    METRICS,
    clairvoyant_reference,
    require_solver,
)
from cluster_env.worlds.deeprm.heuristics import HEURISTICS
from cluster_env.worlds.deeprm.log import DeepRMLog
from cluster_env.worlds.deeprm.observations import MASKS, OBSERVATIONS
from cluster_env.worlds.deeprm.render import draw
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from cluster_env.worlds.deeprm.world import DeepRM

STEPS_PER_WINDOW = 10
"""How many times as long as the arrival window episodes may be at least, with ``--window``."""

_SHIPPED = Path(__file__).parent / "policies"

NUM_DURATIONS = 20
"""Mean durations of a job that are measured in a window of recorded jobs."""


def _from_world(world: DeepRM) -> Mapping[str, Any]:
    return {"cluster": world.cluster, "first_step": world.switches.first_arrival}


WORKLOADS = Registry(
    "workload",
    {
        "bimodal": WorkloadSpec(BimodalWorkload, _from_world),
        "trace": WorkloadSpec(DeepRMLog, _from_world),
    },
)


def columns(task: Task) -> dict[str, Value]:
    """The log if there is one, how fast jobs arrive and for how long, and the rules."""
    part: Any = part_of(task.workload, Split.HELD_OUT)
    world: Any = task.world
    return {
        "trace": task.workload.name if isinstance(task.workload, DeepRMLog) else "",
        "arrival_rate": getattr(part, "arrival_rate", float("nan")),
        "rules": world.rules if isinstance(world.rules, str) else "own",
        "window": getattr(part, "window", 0),
    }


def describe(columns: Mapping[str, Any]) -> str:
    """``arrival window 50 steps, rules of the paper``; with a warm-up, the steps that count."""
    window, warmup = int(float(columns["window"])), float(columns.get("warmup") or 0)
    arrivals = f"arrival window {window} steps"
    if warmup > 0:
        last = window - int(warmup) - 1
        arrivals = f"jobs that arrive in steps {warmup:.0f} to {last} of {window}"
    rules = str(columns["rules"])
    return f"{arrivals}, rules of the {rules}{' code' if rules == 'released' else ''}"


def remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What windows of a log cannot show, and which jobs the released rules lost."""
    found = []
    if any(row.get("trace") for row in rows):
        found.append(
            "Jobsets are windows of the last 20 % of the trace and may overlap: intervals say "
            "nothing of other jobs than these."
        )
    if any(row.get("rules") == "released" and float(row["unfinished"]) for row in rows):
        found.append("Jobs that a full backlog dropped are among the unfinished.")
    return found


def words(task: Task) -> str:
    """``load 70%``, ``trace jobs.csv``, ``loads 10 to 184%, windows 50 to 500``."""
    workload: Any = task.workload
    if isinstance(workload, DeepRMLog):
        return f"trace {workload.name}"
    if not isinstance(workload, BimodalWorkload):
        return type(workload).__name__
    vary = workload.vary
    parts = [f"loads {_range(*vary.load)}" if vary.load else f"load {workload.load:.0%}"]
    if vary.window:
        low, high = min(vary.window), max(vary.window)
        parts.append(f"windows {low} to {high}" if low < high else f"window {low}")
    if vary.small_share:
        parts.append(f"short jobs {_range(*vary.small_share)}")
    return ", ".join(parts)


def _range(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {high:.0%}"


def check_task(task: Task) -> None:
    """Refuses arrival windows that are longer than episodes, and objectives that lack a class."""
    world: Any = task.world
    workload: Any = task.workload
    world.check_window(getattr(workload, "longest_window", getattr(workload, "window", 1)))
    num = world.cluster.num_classes
    one_of_each = JobSet.of([0] * num, [1] * num, [[1]] * num, 1, job_class=range(num))
    task.objective.job_cost(one_of_each)


def _long_episodes(task: Any) -> Mapping[str, Any]:
    return {"world.max_time": max(task.world.max_time, STEPS_PER_WINDOW * task.workload.window)}


def steady(task: Task) -> tuple[Mapping[str, Any], int]:
    """Long windows of recorded jobs: 20 mean durations between two warm-ups of a sixth each.

    In a shorter trace they are as long as a part of it.
    """
    workload = task.workload
    if not isinstance(workload, DeepRMLog):
        return {}, 0
    jobs = workload.recorded
    wanted = math.ceil(1.5 * NUM_DURATIONS * float(jobs.run.mean()))
    window = max(workload.window, min(wanted, int(jobs.span * workload.shortest_share)))
    return {"window": window}, window // 6


SPEC = WorldSpec(
    world=DeepRM,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=("sjf", "packer", "tetris"),
    metrics=(
        *("slowdown", "slowdown_finished", "slowdown_small", "slowdown_large"),
        *("bounded_slowdown", "completion_time", "weighted_completion_time"),
        *("duration_weighted_completion_time", "fair_slowdown", "makespan", "utilization"),
        *("utilization_to_end", "idle", "wait", "longest_wait", "largest_slowdown"),
        *("within_1", "within_2", "within_3", "within_5"),
    ),
    side_metrics={"utilization": 0.1, "wait": 0.25, "longest_wait": 1.0},
    presentation=Presentation(
        columns=columns,
        describe=describe,
        remarks=remarks,
        words=words,
        axis=Axis(
            "workload.load",
            "load {:.0%}".format,
            reach=lambda task: float(task.workload.max_load),  # one job in every step
            option="loads",
        ),
        options={
            "window": CliOption(
                "workload.window",
                "Steps in which jobs arrive. Episodes may take at least ten times as long, unless "
                "--set task.world.max_time sets their limit.",
                _long_episodes,
                metavar="STEPS",
            ),
            "rules": CliOption(
                "world.rules",
                "Rules of DeepRM's paper or of its released code (paper, released), or your own "
                "registered ones.",
                metavar="NAME",
            ),
        },
        steady=steady,
    ),
    variants={
        "classes": {"cluster": {"num_classes": 3}},
        "three resources": {"cluster": {"capacity": [8, 6, 12]}},
        "few seen": {"cluster": {"num_slots": 3, "backlog_view": 2}},
        "its end": {"max_time": 60},
    },
    environments=Environments(
        ids={
            "DeepRM-v0": {"world": {"kind": "deeprm"}},
            "DeepRMReleased-v0": {
                "world": {"kind": "deeprm", "rules": "released", "max_time": 200}
            },
        },
        observations=OBSERVATIONS,
        masks=MASKS,
        draw=draw,
        loses_jobs=lambda world: (
            world.switches.stop != "all_done" or world.switches.drop_when_backlog_full
        ),
        # A step is charged after it has passed, or finished jobs cost more: the released code.
        returns_cost=lambda world: (
            not (world.switches.charge_after_step or world.switches.linger_finished)
        ),
    ),
    training=Training(
        transfers=("rules", "max_time"),
        policies={
            file.parent.name: file.parent for file in sorted(_SHIPPED.glob("*/weights.json"))
        },
        check_task=check_task,
    ),
    tools=Tools(
        optimum=Optimum(
            METRICS,
            search=lambda jobset, world, metric, **options: clairvoyant_reference(
                jobset, world.cluster, metric, **options
            ),
            require=require_solver,
            time_limit_s=DEFAULT_TIME_LIMIT_S,
        ),
        futures=Futures(
            workload=lambda workload, steps: workload.after(steps),
            arrived=lambda simulator: simulator.state.next_job,
            reach=150,
        ),
    ),
)
