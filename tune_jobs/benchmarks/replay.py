"""Jobs a second that a rule schedules: one pool against a plain event loop, sites against pools."""

from functools import partial
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import PlayedPolicy
from cluster_env.core.spec import build_world, get_heuristic
from cluster_env.core.world import Simulator
from cluster_env.objectives import get_objective
from rllib_configs.config.loading import load_config
from tune_jobs.benchmarks.measuring import Entry, Work, rates
from tune_jobs.benchmarks.plain_easy import LoopJob, plain_easy

JOBS = 1_000_000
PLAIN_JOBS = 10_000
BACKLOG_JOBS = 1_000
PROCESSORS = 256
RULE = "fcfs:easy"
OVERLOAD = 2.0
"""Load of the entry whose queue grows to the end: half of the jobs wait when the last arrives."""

SITE_JOBS = 20_000
SITES = (
    ("one_node", 1, PROCESSORS, RULE),
    ("one_node_plan", 1, PROCESSORS, "fcfs:conservative"),
    ("nodes", 500, 16, RULE),
    ("nodes_plan", 32, 8, "fcfs:conservative"),
)
"""Entries of sites: nodes, processors of each, and rule. Fewer jobs where the rule makes a plan."""

_PLAIN = (
    "in a plain Python event loop, which makes its reservation anew at each event, with the same "
    "schedule, measured here"
)


def measure(
    seconds: float,
    jobs: int = JOBS,
    plain_jobs: int = PLAIN_JOBS,
    backlog_jobs: int = BACKLOG_JOBS,
    site_jobs: int = SITE_JOBS,
) -> list[Entry]:
    """Measures all entries on jobs of Lublin and Feitelson's model.

    Args:
        seconds: how long each is measured in all.
        jobs: that ours schedules at the default load.
        plain_jobs: the first of them, which the loop in Python schedules.
        backlog_jobs: that both schedule where load is `OVERLOAD`.
        site_jobs: that sites schedule, a tenth of them where the rule makes a plan.

    Raises:
        RuntimeError: if the plain loop, or a site of one node, gives another schedule.
    """
    many, backlog = _sample(jobs), _sample(backlog_jobs, f"task.workload.load={OVERLOAD}")
    few = many.select(slice(plain_jobs), window=many.window)
    entries = []
    for name, ours, theirs, what, reference in (
        ("fcfs_easy", many, few, f"{jobs:,} Lublin jobs", f"the first {plain_jobs:,} of them"),
        ("backlog", backlog, backlog, f"{backlog_jobs:,} of them at load 200 %", "the same"),
    ):
        simulator, play = _played(theirs)
        play()
        if simulator.schedule().start.tolist() != _plain_starts(theirs):
            raise RuntimeError("the plain event loop and the simulator give different schedules")
        measured, plain = rates(_played(ours)[1], partial(_plain, theirs), seconds)
        unit = f"jobs/s of {what} on {PROCESSORS} processors, one core"
        entries.append(Entry(f"replay.{name}", unit, measured, f"{reference} {_PLAIN}", plain))
    return entries + [_against_pool(seconds, site_jobs, *site) for site in SITES]


def _against_pool(
    seconds: float, jobs: int, name: str, nodes: int, processors: int, rule: str
) -> Entry:
    """A site of alike nodes, and the pool of all their processors."""
    count = jobs // 10 if rule.endswith("conservative") else jobs
    jobset = _sample(count, f"task.world.processors={nodes * processors}")
    site = {"nodes": [{"name": "n", "count": nodes, "processors": processors}]}
    here, play = _played(jobset, rule, site=site)
    there, play_pool = _played(jobset, rule, processors=nodes * processors)
    play()
    play_pool()
    if nodes == 1 and here.schedule().start.tolist() != there.schedule().start.tolist():
        raise RuntimeError("a site of one node and the pool give different schedules")
    ours, pool = rates(play, play_pool, seconds)
    unit = f"jobs/s of {count:,} Lublin jobs, {rule}, on {nodes} x {processors} processors"
    return Entry(f"replay.{name}", unit, ours, "all processors as one pool", pool)


def _sample(jobs: int, *overrides: str) -> JobSet:
    settings = [f"task.workload.jobs={jobs}", f"task.world.processors={PROCESSORS}", *overrides]
    workload: Any = load_config("hpc-smoke", settings).task.build().workload
    jobset: JobSet = workload.sample(np.random.default_rng(0))
    return jobset


def _played(jobset: JobSet, rule: str = RULE, **options: Any) -> tuple[Simulator, Work]:
    """A simulator with the jobs, and the work of playing them; ``options`` are of the world."""
    world = build_world({"kind": "hpc", "processors": PROCESSORS, **options})
    simulator, policy = world.simulator(), get_heuristic(rule, world)
    assert isinstance(policy, PlayedPolicy)
    simulator.load([jobset], get_objective("bounded_slowdown"))
    keys = np.zeros(1, np.uint64)

    def work() -> float:
        policy.play(simulator, keys)
        return float(jobset.num_jobs)

    return simulator, work


def _plain(jobset: JobSet) -> float:
    return float(len(_plain_starts(jobset)))


def _plain_starts(jobset: JobSet) -> list[int]:
    columns = (jobset.arrival, jobset.duration, jobset.attributes["estimate"], jobset.demand[:, 0])
    jobs = [LoopJob(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    plain_easy(jobs, PROCESSORS)
    return [job.start for job in jobs]
