"""Jobs a second that a rule schedules in the simulator, against a plain event loop."""

from functools import partial
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import PlayedPolicy
from cluster_env.core.spec import build_world, get_heuristic
from cluster_env.core.world import Simulator
from cluster_env.objectives import get_objective
from rllib_configs.loading import load_config
from tune_jobs.benchmarks.measuring import Entry, Work, rates
from tune_jobs.benchmarks.plain_easy import LoopJob, plain_easy

JOBS = 1_000_000
PLAIN_JOBS = 10_000
BACKLOG_JOBS = 1_000
PROCESSORS = 256
RULE = "fcfs:easy"
OVERLOAD = 2.0
"""Load of the entry whose queue grows to the end: half of the jobs wait when the last arrives."""

_PLAIN = (
    "in a plain Python event loop, which makes its reservation anew at each event, with the same "
    "schedule, measured here"
)


def measure(
    seconds: float,
    jobs: int = JOBS,
    plain_jobs: int = PLAIN_JOBS,
    backlog_jobs: int = BACKLOG_JOBS,
) -> list[Entry]:
    """Measures both entries on jobs of Lublin and Feitelson's model.

    Args:
        seconds: how long each is measured in all.
        jobs: that ours schedules at the default load.
        plain_jobs: the first of them, which the loop in Python schedules.
        backlog_jobs: that both schedule where load is `OVERLOAD`.

    Raises:
        RuntimeError: if not both give the same schedule.
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
    return entries


def _sample(jobs: int, *overrides: str) -> JobSet:
    settings = [f"task.workload.jobs={jobs}", f"task.world.processors={PROCESSORS}", *overrides]
    workload: Any = load_config("hpc-smoke", settings).task.build().workload
    jobset: JobSet = workload.sample(np.random.default_rng(0))
    return jobset


def _played(jobset: JobSet) -> tuple[Simulator, Work]:
    """A simulator with the jobs, and the work of playing them."""
    world = build_world({"kind": "hpc", "processors": PROCESSORS})
    simulator, policy = world.simulator(), get_heuristic(RULE, world)
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
