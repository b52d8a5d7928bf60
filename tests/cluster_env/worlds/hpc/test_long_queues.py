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
ALLOWANCE = 4  # caches hold the shorter queue; a cost that grew with its square would be 10 times
ROUNDS = 5  # what others do on the machine makes one of them dear, not all


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
    short, long = (Queue(rule, count, over) for count in (waiting, waiting * TIMES_LONGER))
    for _ in range(ROUNDS):
        if long.event_s() < ALLOWANCE * TIMES_LONGER * max(short.event_s(), 1e-7):
            break
    else:
        pytest.fail(f"{short.event_s():.2g} s an event, and {long.event_s():.2g} s with {long}")


class Queue:
    """What an event costs beside jobs that wait, measured better each time that it is asked."""

    def __init__(self, rule: str, waiting: int, over: int) -> None:
        self.rule, self.waiting = Rule(*rule.split("/")), waiting
        self.simulators = [HPC(256, max_time=100 * EVENTS + 1000).simulator() for _ in range(2)]
        for simulator, events in zip(self.simulators, (1, EVENTS + 1), strict=True):
            simulator.load([crowd(waiting, events, over)], get_objective("bounded_slowdown"))
        self.least = [np.inf, np.inf]

    def event_s(self) -> float:
        """CPU seconds of an arrival or a finish; without those in which the queue is built."""
        for index, simulator in enumerate(self.simulators):
            for _ in range(2):
                began = time.process_time()
                simulator.play(self.rule)
                self.least[index] = min(self.least[index], time.process_time() - began)
        return (self.least[1] - self.least[0]) / (2 * EVENTS)

    def __str__(self) -> str:
        return f"{self.waiting} jobs waiting"


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
