"""Jobs a second that a rule schedules in the simulator, against a plain event loop."""

from functools import partial

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from cluster_env.worlds.hpc.simulator import HPCSimulator
from cluster_env.worlds.hpc.workloads import LublinWorkload
from tune_jobs.benchmarks.measuring import ROUNDS, Entry, Sample, Work, rate, rates
from tune_jobs.benchmarks.plain_easy import plain_fcfs_easy

JOBS = 1_000_000
PLAIN_JOBS = 10_000
PROCESSORS = 256
TIMES_LARGER = 640  # 163,840 processors
OTHER_RULES = (("saf", "easy"), ("sjf", "skip"), ("saf", "strict"))


def measure(seconds: float, jobs: int = JOBS, plain_jobs: int = PLAIN_JOBS) -> list[Entry]:
    """Measures both entries on jobs of Lublin and Feitelson's model at the default load.

    Args:
        seconds: how long each is measured in all.
        jobs: that ours schedules.
        plain_jobs: the first of them, which the plain loop schedules.

    Raises:
        RuntimeError: if both do not give the same schedule.
    """
    jobset = LublinWorkload(PROCESSORS, jobs=jobs).sample(np.random.default_rng(0))
    few = jobset.select(slice(plain_jobs), window=jobset.window)
    _require_equal(few)
    easy = Rule("fcfs", "easy")
    ours, theirs = rates(played(jobset, easy), partial(_plain, few), seconds)
    others = {
        f"{order}_{mode}_jobs_per_s": rate(played(few, Rule(order, mode)), seconds / ROUNDS)
        for order, mode in OTHER_RULES
    }
    return [
        Entry(
            "replay.fcfs_easy",
            f"jobs/s of {jobs:,} Lublin jobs on {PROCESSORS} processors, one core",
            ours,
            f"the first {plain_jobs:,} of them in a plain Python event loop, with the same "
            "schedule, measured here",
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
    rule = Rule("fcfs", "easy")
    ours, theirs = rates(played(large, rule, TIMES_LARGER), played(few, rule), seconds)
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


def played(jobset: JobSet, rule: Rule, times_larger: int = 1) -> Work:
    """Plays jobs under a rule."""
    simulator = _loaded(jobset, times_larger)

    def work() -> float:
        simulator.play(rule)
        return float(jobset.num_jobs)

    return work


def _loaded(jobset: JobSet, times_larger: int = 1) -> HPCSimulator:
    simulator = HPC(PROCESSORS * times_larger).simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    return simulator


def _plain(jobset: JobSet) -> float:
    _plain_starts(jobset)
    return float(jobset.num_jobs)


def _plain_starts(jobset: JobSet) -> list[int]:
    return plain_fcfs_easy(
        jobset.arrival.tolist(),
        jobset.duration.tolist(),
        jobset.attributes["estimate"].tolist(),
        jobset.demand[:, 0].tolist(),
        PROCESSORS,
    )


def _require_equal(jobset: JobSet) -> None:
    simulator = _loaded(jobset)
    simulator.play(Rule("fcfs", "easy"))
    if simulator.schedule().start.tolist() != _plain_starts(jobset):
        raise RuntimeError("the plain event loop and the simulator give different schedules")
