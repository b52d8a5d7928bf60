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
from tune_jobs.benchmarks.measuring import ROUNDS, Entry, Sample, Work, rate, rates
from tune_jobs.benchmarks.plain_easy import PlainJob, lean_fcfs_easy, plain_easy

JOBS = 1_000_000
PLAIN_JOBS = 10_000
PROCESSORS = 256
TIMES_LARGER = 640  # 163,840 processors
RULE = "fcfs:easy"
OTHER_RULES = ("saf:easy", "sjf:skip", "saf:strict")


def measure(seconds: float, jobs: int = JOBS, plain_jobs: int = PLAIN_JOBS) -> list[Entry]:
    """Measures both entries on jobs of Lublin and Feitelson's model at the default load.

    Args:
        seconds: how long each is measured in all.
        jobs: that ours schedules.
        plain_jobs: the first of them, which the loops in Python schedule.

    Raises:
        RuntimeError: if not all give the same schedule.
    """
    task = load_config(
        "hpc-smoke", [f"task.workload.jobs={jobs}", f"task.world.processors={PROCESSORS}"]
    ).task.build()
    workload: Any = task.workload
    jobset = workload.sample(np.random.default_rng(0))
    few = jobset.select(slice(plain_jobs), window=jobset.window)
    _require_equal(few)
    ours, theirs = rates(played(jobset, RULE), partial(_plain, few), seconds)
    others = {
        f"{rule.replace(':', '_')}_jobs_per_s": rate(played(few, rule), seconds / ROUNDS)
        for rule in OTHER_RULES
    }
    others["lean_python_jobs_per_s"] = rate(partial(_lean, few), seconds / ROUNDS)
    return [
        Entry(
            "replay.fcfs_easy",
            f"jobs/s of {jobs:,} Lublin jobs on {PROCESSORS} processors, one core",
            ours,
            f"the first {plain_jobs:,} of them in a plain Python event loop, which sorts its queue "
            "and makes its reservation anew at each event, with the same schedule, measured here",
            theirs,
            parts=others,
        ),
        _of_size(few, seconds),
    ]


def _of_size(few: JobSet, seconds: float) -> Entry:
    """The same jobs on a machine that is larger, as they are: does its size cost anything?"""
    large = JobSet.of(
        few.arrival,
        few.duration,
        few.demand * TIMES_LARGER,
        window=few.window,
        attributes=few.attributes,
    )
    ours, theirs = rates(played(large, RULE, TIMES_LARGER), played(few, RULE), seconds)
    return Entry(
        "replay.large_machine",
        f"jobs/s on {PROCESSORS * TIMES_LARGER:,} processors, one core",
        _best(ours),
        f"the same jobs, each {TIMES_LARGER} times narrower, on {PROCESSORS} processors",
        _best(theirs),
    )


def _best(sample: Sample) -> Sample:
    """The best round first: two equal things are told apart by what disturbs them least."""
    return Sample((max(sample.values),))


def played(jobset: JobSet, rule: str, times_larger: int = 1) -> Work:
    """Plays jobs under a rule."""
    policy, simulator = _loaded(jobset, rule, times_larger)
    keys = np.zeros(1, np.uint64)

    def work() -> float:
        policy.play(simulator, keys)
        return float(jobset.num_jobs)

    return work


def _loaded(jobset: JobSet, rule: str, times_larger: int = 1) -> tuple[PlayedPolicy, Simulator]:
    world = build_world({"kind": "hpc", "processors": PROCESSORS * times_larger})
    simulator, policy = world.simulator(), get_heuristic(rule, world)
    assert isinstance(policy, PlayedPolicy)
    simulator.load([jobset], get_objective("bounded_slowdown"))
    return policy, simulator


def _plain(jobset: JobSet) -> float:
    _plain_starts(jobset)
    return float(jobset.num_jobs)


def _lean(jobset: JobSet) -> float:
    _lean_starts(jobset)
    return float(jobset.num_jobs)


def _plain_starts(jobset: JobSet) -> list[int]:
    columns = zip(*_columns(jobset), strict=True)
    jobs = [PlainJob(number, *values) for number, values in enumerate(columns)]
    plain_easy(jobs, PROCESSORS, key=lambda job: (job.arrival, job.number))
    return [job.start for job in jobs]


def _lean_starts(jobset: JobSet) -> list[int]:
    return lean_fcfs_easy(*_columns(jobset), PROCESSORS)


def _columns(jobset: JobSet) -> tuple[list[int], list[int], list[int], list[int]]:
    estimate = jobset.attributes["estimate"].tolist()
    columns = jobset.arrival.tolist(), jobset.duration.tolist(), estimate
    return *columns, jobset.demand[:, 0].tolist()


def _require_equal(jobset: JobSet) -> None:
    policy, simulator = _loaded(jobset, RULE)
    policy.play(simulator, np.zeros(1, np.uint64))
    ours = simulator.schedule().start.tolist()
    if not ours == _plain_starts(jobset) == _lean_starts(jobset):
        raise RuntimeError("the plain event loops and the simulator give different schedules")
