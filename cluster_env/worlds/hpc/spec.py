"""The registration of the world of batch-scheduled machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.durations import duration
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.spec import (
    Axis,
    CliOption,
    Environments,
    Futures,
    Presentation,
    Tools,
    Training,
    Value,
    WorldSpec,
)
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Site
from cluster_env.task import Task
from cluster_env.workloads import part_of
from cluster_env.workloads.log import LogPart, LogWorkload
from cluster_env.workloads.windows import filling_time, natural_length
from cluster_env.worlds.hpc.bounds import read_bound
from cluster_env.worlds.hpc.published import PROTOCOLS
from cluster_env.worlds.hpc.real_sites import real_sites
from cluster_env.worlds.hpc.render import draw
from cluster_env.worlds.hpc.rules import HEURISTICS
from cluster_env.worlds.hpc.scorer import Scorer
from cluster_env.worlds.hpc.scoring import score_states
from cluster_env.worlds.hpc.views import OBSERVATIONS
from cluster_env.worlds.hpc.workloads import (
    WORKLOADS,
    BimodalWorkload,
    LublinWorkload,
    any_site,
)
from cluster_env.worlds.hpc.world import HPC

_SHIPPED = Path(__file__).parent / "policies"

_BACKFILLED = ("saf", "sjf", "wspt", "fcfs", "unicep", "wfp3")
"""Baselines whose backfilling is that of the world."""


def columns(task: Task) -> dict[str, Value]:
    """The log if there is one, the machine, and how long a jobset is."""
    part: Any = part_of(task.workload, Split.HELD_OUT)
    world: Any = task.world
    log = task.workload if isinstance(task.workload, LogWorkload) else None
    lasts = isinstance(part, BimodalWorkload) or (isinstance(part, LogPart) and part.jobs is None)
    return {
        "trace": log.name if log else "",
        "left_out": log.num_too_large if log else 0,
        "processors": world.processors,
        "jobset_size": getattr(part, "jobs", 0) or 0,
        "window_s": part.window if lasts else 0,
        "backfilling": world.backfilling,
        **({"max_wait": world.max_wait} if world.max_wait else {}),
    }


def describe(columns: Mapping[str, Any]) -> str:
    """``256 processors, 256 jobs each, easy backfilling unless named``; or windows, as days."""
    size, window = int(float(columns["jobset_size"])), float(columns.get("window_s") or 0)
    warmup = float(columns.get("warmup") or 0)
    jobs = f"{size:,} jobs each" if size else f"windows of {_time(window)}"
    if warmup:
        jobs += f", the first and last {_time(warmup)} not counted"
    left_out = int(float(columns.get("left_out") or 0))
    bound = float(columns.get("max_wait") or 0)
    more = f"; {left_out:,} larger jobs left out" if left_out else ""
    first = f"; who waits longer than {duration(bound)} goes first" if bound else ""
    return (
        f"{int(float(columns['processors'])):,} processors, {jobs}, {columns['backfilling']} "
        f"backfilling unless named{first}{more}"
    )


def _time(seconds: float) -> str:
    """``3 days``, ``7.5 hours``, ``90 s``."""
    for name, length in (("days", 86_400), ("hours", 3600)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {name}"
    return f"{seconds:.0f} s"


def remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What windows of a log cannot show."""
    if not any(row.get("trace") and row.get("protocol", "unseen") == "unseen" for row in rows):
        return []
    return [
        "Jobsets are windows of the last part of the log and may overlap: intervals say nothing of "
        "other jobs than these."
    ]


def steady(task: Task) -> tuple[Mapping[str, Any], int]:
    """Long windows of a log that begin on a filled machine, and leave out how it fills and empties.

    What is measured between two warm-ups lasts 20 mean run times or longer. In a log that is too
    short for it, windows are as long as the part that they are cut from, and a quarter at each end
    is left out.
    """
    workload = task.workload
    if not isinstance(workload, LogWorkload) or workload.jobs is not None or workload.whole:
        return {}, 0
    measured = max(workload.window, natural_length(workload.recorded))
    warmup = max(measured // 4, filling_time(workload.recorded))
    parts = (workload.part(split).recorded for split in (Split.VALIDATION, Split.HELD_OUT))
    longest = min(part.span for part in parts)
    window = min(measured + 2 * warmup, longest)
    return {"window": window}, min(warmup, window // 4)


def guarded(task: Task) -> Mapping[str, Any]:
    """A bound on waits for jobs of a log: windows are too short to show an order that starves some.

    A task that has a bound keeps it.
    """
    world: Any = task.world
    bounds = isinstance(task.workload, LogWorkload) and not world.max_wait
    return {"max-wait": "x2"} if bounds else {}


def words(task: Task) -> str:
    """``load 90%``, ``trace theta.swf.gz``, ``jobs of up to 15 s``."""
    workload: Any = task.workload
    if isinstance(workload, LogWorkload):
        return f"trace {workload.name}"
    if isinstance(workload, BimodalWorkload):
        return f"jobs of up to {workload.longest} s"
    load = getattr(workload, "load", 0)
    return f"load {load:.0%}" if load else type(workload).__name__


def references(world: Any) -> tuple[str, ...]:
    """The baselines that backfill; a strict one may leave the machine idle for a low slowdown."""
    easy = "" if world.backfilling == "easy" else ":easy"
    return (*(f"{order}{easy}" for order in _BACKFILLED), "sjf:skip")


def _thesis(**options: Any) -> dict[str, Any]:
    """A formulation of the thesis, see `HPC`; the thesis steps by the second."""
    return {"world": {"kind": "hpc", **options}, "workload": {"jobs": 64}, "objective": "slowdown"}


def _weights_of_site(task: Any) -> Mapping[str, Any]:
    """Weights of the order `priority`, where the site's description has them."""
    site = task.world.site
    if site is None or site.weights is None:
        return {}
    return {f"world.priority.{name}": weight for name, weight in asdict(site.weights).items()}


def _partition_alone(task: Any) -> Mapping[str, Any]:
    """Where a site is described, the part of it that has one of its partitions alone."""
    site = task.world.site
    return {} if site is None else {"world.site": asdict(site.only(str(task.workload.partition)))}


_SITE = {
    "nodes": [
        {"name": "thin", "count": 12, "processors": 16},
        {"name": "fat", "count": 2, "processors": 32},
    ],
    "partitions": [{"name": "all"}, {"name": "fat", "nodes": ["fat"], "tier": 2}],
    "calendar": [
        {"start": 900, "end": 1800, "nodes": ["fat"], "kind": "reservation"},
        {"start": 2400, "end": 3600, "nodes": ["thin"], "kind": "planned"},
    ],
}

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    **{name: {"backfilling": name} for name in ("strict", "skip", "conservative")},
    "bound": {"max_wait": 600},
    "bound and conservative": {"max_wait": 600, "backfilling": "conservative"},
    "few seen": {"queue": 4},
    "a horizon": {"horizon": 8, "horizon_step": 60},
    "its end": {"max_time": 4000},
    "classes": {"num_classes": 3},
    "learned run times": {"run_times": "mixed"},
    "a site": {"site": _SITE},
    "a site and a bound": {"site": _SITE, "max_wait": 600},
}
"""Backfilling, the bound on waits, what a policy sees, an end of time, run times, and nodes."""


def warm(world: HPC, jobsets: Sequence[JobSet]) -> None:
    """Draws estimates, uses a scorer in its three ways, and plays a site.

    Decisions at a site, which take minutes to compile, are left to who first trains or steps there.
    """
    rng, scorer = np.random.default_rng(0), Scorer.linear()
    LublinWorkload(jobs=8, estimates="tsafrir").sample(rng)
    simulator = world.simulator()
    simulator.load(jobsets, get_objective("bounded_slowdown"))
    score_states(scorer, world, simulator.states)
    simulator.choose(scorer, simulator.episode)
    simulator.play(scorer)
    at_site = HPC(site=Site(nodes=(NodeGroup(processors=256),))).simulator()
    at_site.load([LublinWorkload(jobs=8).sample(rng)], get_objective("bounded_slowdown"))
    at_site.play(Scorer.linear("easy"))


def _check_mixed(jobset: JobSet) -> None:
    """Refuses jobs of users, whose numbers in a jobset depend on those who are still to come.

    Raises:
        InputError: if jobs have users.
    """
    if "user" in jobset.attributes:
        raise InputError(
            "rollouts cannot mix sampled jobs with those of users; take jobs without users"
        )


SPEC = WorldSpec(
    world=HPC,
    workloads=WORKLOADS,
    heuristics=HEURISTICS,
    baselines=(*_BACKFILLED, "sjf:skip", "saf:strict", "wspt:strict"),
    metrics=(
        *("bounded_slowdown", "bounded_slowdown_narrow", "bounded_slowdown_medium"),
        *("bounded_slowdown_wide", "utilization", "utilization_to_end", "wait", "longest_wait"),
        *("slowdown", "completion_time", "makespan"),
    ),
    side_metrics={"utilization": 0.1, "wait": 0.25, "longest_wait": 1.0},
    variants=VARIANTS,
    presentation=Presentation(
        columns=columns,
        describe=describe,
        remarks=remarks,
        words=words,
        time=duration,
        time_unit="s",
        axis=Axis("workload.load", "load {:.0%}".format),
        options={
            "processors": CliOption(
                "world.processors", "Processors of the machine.", metavar="INTEGER"
            ),
            "memory": CliOption(
                "world.memory", "Units of memory; 0 ignores memory.", metavar="INTEGER"
            ),
            "gpus": CliOption("world.gpus", "GPUs; 0 ignores GPUs.", metavar="INTEGER"),
            "site": CliOption(
                "world.site",
                "Nodes, partitions, limits and calendar of the site: a YAML file or slurm.conf, "
                "and, separated by commas, what sacctmgr show qos, assoc and event --parsable2 and "
                "scontrol show res -o print, a calendar (CSV), or TZ=Europe/Berlin.",
                follows=_weights_of_site,
                metavar="FILE,...",
            ),
            "backfilling": CliOption(
                "world.backfilling",
                "Backfilling of policies that do not name theirs: strict, skip, easy or "
                "conservative.",
                metavar="NAME",
            ),
            "kill-at-estimate": CliOption(
                "world.kill_at_estimate",
                "Whether jobs are killed at the end of their estimate.",
                metavar="true|false",
            ),
            "max-wait": CliOption(
                "world.max_wait",
                "A job that has waited longer goes first and has room reserved, under any policy: "
                "0 for never, a time such as 5d, or with a log x2, twice the longest wait of "
                "fcfs:easy in its earlier part.",
                read=read_bound,
                metavar="TIME",
            ),
            "window": CliOption(
                "workload.window",
                "Length of a window of a log in seconds. By default at least 20 mean run times, "
                "between two warm-ups.",
                metavar="SECONDS",
                draws_jobs=True,
            ),
            "log-format": CliOption(
                "workload.log_format",
                "Format of a log: swf, csv, sacct, sacct-json, jobcomp, pbs, or auto, which "
                "detects it by the first lines.",
                metavar="NAME",
            ),
            "time-zone": CliOption(
                "workload.time_zone",
                "Time zone of a log's times without a zone, such as Europe/Berlin; by default UTC.",
                metavar="ZONE",
            ),
            "columns": CliOption(
                "workload.columns",
                "Names of a CSV's columns: arrival=submission_time,duration=runtime.",
                metavar="NAME=COLUMN,...",
            ),
            "partition": CliOption(
                "workload.partition",
                "Read only this partition or queue of a log; by default all. With --site, the "
                "machine is the partition's nodes alone.",
                follows=_partition_alone,
                read=lambda name, task_of: name,  # after the site, which it makes smaller
                metavar="NAME",
            ),
            "missing-limits": CliOption(
                "workload.missing_limits",
                "Time limit of jobs without one in a log: longest (the longest limit of the log), "
                "run-time, or a number of seconds.",
                metavar="NAME|SECONDS",
            ),
            "run-times": CliOption(
                "world.run_times",
                "Predicted run times: user (the users' estimates), recent (the mean of the user's "
                "last two jobs), mixed (between estimates and the past), or actual.",
                metavar="NAME",
            ),
        },
        steady=steady,
        guarded=guarded,
    ),
    environments=Environments(
        ids={
            "HPC-v0": {"world": {"kind": "hpc"}, "objective": "bounded_slowdown"},
            "HPCBase-v0": _thesis(reward="base", time_step=60, every_step=True),
            "HPCSparse-v0": _thesis(reward="sparse", time_step=60),
            "HPCReduced-v0": _thesis(reward="reduced", time_step=60),
            "HPCOptions-v0": _thesis(reward="options", time_step=60),
        },
        observations=OBSERVATIONS,
        draw=draw,
        returns_cost=lambda world: bool(world.reward == "at_start"),
    ),
    training=Training(
        objective="bounded_slowdown",
        references=references,
        families={"any-site": any_site},
        site_families={"real-sites": real_sites},
        transfers=(
            *("processors", "queue", "backfilling", "priority", "kill_at_estimate", "max_time"),
            *("max_wait", "run_times", "horizon", "horizon_step", "site"),
        ),
        policies={
            file.parent.name: file.parent for file in sorted(_SHIPPED.glob("*/weights.json"))
        },
        discount=lambda world: world.reward_discount if world.reward == "options" else 1.0,
    ),
    tools=Tools(
        protocols=PROTOCOLS,
        warm=warm,
        futures=Futures(
            workload=lambda workload, jobs: workload.after(jobs),
            arrived=lambda simulator: simulator.status.coming,
            reach=64,
            check=_check_mixed,
        ),
    ),
)
