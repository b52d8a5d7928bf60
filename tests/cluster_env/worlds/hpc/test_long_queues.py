"""Policies that hold back make queues long: an event must not cost more than a look at each job."""

import time

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of

EVENTS = 100
TIMES_LONGER = 10
ALLOWANCE = 3  # caches hold the shorter queue; a cost that grew with its square would be 10 times


@pytest.mark.parametrize("over", [1, 2], ids=["exact", "overestimated"])
@pytest.mark.parametrize(
    ("rule", "waiting"),
    [
        ("fcfs/strict", 10_000),
        ("saf/skip", 10_000),
        ("fcfs/easy", 10_000),
        ("saf/easy", 10_000),
        ("wfp3/easy", 10_000),
        ("fcfs/conservative", 500),  # each job is planned once in any case, which is n^2
    ],
)
def test_an_event_costs_at_most_a_look_at_each_waiting_job(
    rule: str, waiting: int, over: int
) -> None:
    short, long = (event_s(rule, count, over) for count in (waiting, waiting * TIMES_LONGER))
    assert long < ALLOWANCE * TIMES_LONGER * max(short, 1e-7)


def event_s(rule: str, waiting: int, over: int) -> float:
    """CPU seconds of an arrival or a finish; without those in which the queue is built."""
    few, many = (played_s(rule, crowd(waiting, events, over)) for events in (1, EVENTS + 1))
    return (many - few) / (2 * EVENTS)


def played_s(rule: str, jobset: JobSet) -> float:
    simulator = HPC(256, max_time=100 * EVENTS + 1000).simulator()
    simulator.load([jobset], get_objective("bounded_slowdown"))
    seconds = []
    for _ in range(3):
        began = time.process_time()
        simulator.play(Rule(*rule.split("/")))
        seconds.append(time.process_time() - began)
    return min(seconds)


def crowd(waiting: int, events: int, over: int) -> JobSet:
    """Most of the machine runs one job, what waits needs more than half, and small ones come.

    Every small job starts at once and ends before the next one comes. The queue is built from its
    head to its tail, which is quick.
    """
    rng = np.random.default_rng(0)
    wide, long = rng.integers(129, 257, waiting), rng.integers(1000, 2000, waiting)
    by_area = np.argsort(wide * long)
    submit = [[0], np.ones(waiting), 2 + 100 * np.arange(events)]
    run = [[10**8], long[by_area], rng.integers(1, 40, events)]
    size = [[160], wide[by_area], rng.integers(1, 97, events)]
    jobs = [np.concatenate(column).astype(np.int64) for column in (submit, run, size)]
    return jobset_of(jobs[0], jobs[1], jobs[1] * over, jobs[2])
