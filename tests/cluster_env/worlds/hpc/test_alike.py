"""Jobs that are alike wait behind one another: the schedules are those of a queue of all jobs."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.objectives import get_objective
from cluster_env.sites.weights import Weights
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, ORDERS, Rule
from cluster_env.worlds.hpc.scorer import MODES, SIZE, Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of
from tests.cluster_env.worlds.hpc.plain_rules import plain_starts

WORLD = HPC(processors=PROCESSORS)
KINDS = 4


@st.composite
def crowds(draw) -> JobSet:
    """Jobs of a few kinds, of two users, in a queue that is long enough for lines (`_LONG`)."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    count = draw(st.integers(50, 80))
    kind = rng.integers(0, KINDS, count)
    estimate, demand = rng.integers(1, 13, KINDS)[kind], rng.integers(1, PROCESSORS, KINDS)[kind]
    run = np.maximum(1, estimate + rng.integers(-9, 4, count))
    gaps = rng.integers(0, draw(st.integers(1, 2)), count)
    return jobset_of(np.cumsum(gaps), run, estimate, demand, user=rng.integers(0, 2, count))


def starts(jobset: JobSet, policy: Rule | Scorer, max_wait: int = 0) -> list[int]:
    simulator = replace(WORLD, max_wait=max_wait).simulator()
    simulator.load([jobset, jobset], get_objective("bounded_slowdown"))
    simulator.play(policy, np.full(2, 5, np.uint64))
    both = simulator.schedule().start.reshape(2, -1)
    assert both[0].tolist() == both[1].tolist() or getattr(policy, "order", "") == "random"
    return both[0].tolist()


def all_different(jobset: JobSet) -> JobSet:
    """The same jobs of a user each, so that none is alike."""
    users = np.arange(jobset.num_jobs)
    return replace(jobset, attributes={**jobset.attributes, "user": users})


@pytest.mark.parametrize(
    "order", [order for order in ORDERS if order not in ("random", "priority")]
)
@given(
    jobset=crowds(),
    backfilling=st.sampled_from(BACKFILLING),
    max_wait=st.sampled_from([0, 0, 3, 9]),
)
@settings(max_examples=5)
def test_rules(order: str, backfilling: str, jobset: JobSet, max_wait: int) -> None:
    rule = Rule(order, backfilling)
    assert starts(jobset, rule, max_wait) == starts(all_different(jobset), rule, max_wait)
    assert starts(jobset, rule, max_wait) == plain_starts(jobset, rule, PROCESSORS, max_wait)


@pytest.mark.parametrize("age", [1000.0, -1000.0])
@given(jobset=crowds(), backfilling=st.sampled_from(BACKFILLING))
@settings(max_examples=15)
def test_fair_shares(age: float, jobset: JobSet, backfilling: str) -> None:
    """A negative weight of the age lets the newest of them go first."""
    rule = Rule("priority", backfilling, Weights(age, 500.0, 2000.0))
    simulator = WORLD.simulator()
    simulator._keeps_order = lambda rule: False  # type: ignore[method-assign]
    simulator.load([jobset], get_objective("bounded_slowdown"))
    simulator.play(rule)
    assert starts(jobset, rule) == simulator.schedule().start.tolist()


@pytest.mark.parametrize("mode", MODES)
@given(
    jobset=crowds(),
    max_wait=st.sampled_from([0, 0, 3, 9]),
    seed=st.integers(0, 1000),
    stretch=st.sampled_from([-3.0, 0.0, 2.0]),
)
@settings(max_examples=20)
def test_scorers(mode: str, jobset: JobSet, max_wait: int, seed: int, stretch: float) -> None:
    """Where longer waits count against a job, the newest goes first and none stands behind."""
    weights = np.random.default_rng(seed).normal(size=(SIZE, SIZE))
    weights[:-1, :-1] *= seed % 2
    weights[4] = 0.0
    weights[4, -1] = stretch
    scorer = Scorer(weights, mode)
    assert scorer.keeps_order == (stretch <= 0)
    assert starts(jobset, scorer, max_wait) == starts(all_different(jobset), scorer, max_wait)


@pytest.mark.parametrize(
    "policy",
    [Rule("fcfs"), Rule("sjf"), Rule("wfp3"), Rule("priority"), Scorer.linear("easy", share=1.0)],
    ids=["fcfs", "sjf", "wfp3", "priority", "scorer"],
)
def test_an_event_costs_the_same_however_many_are_alike(policy: Rule | Scorer) -> None:
    least = {}
    for waiting in (1000, 50_000):
        jobs = waiting + 3000
        submit = np.concatenate([[0], np.ones(waiting - 1), 1 + np.arange(jobs - waiting)])
        run = np.where(np.arange(jobs) == 0, 3000, 5)
        size = np.where(np.arange(jobs) < waiting, PROCESSORS - 1 - np.arange(jobs) % 3, 1)
        jobset = jobset_of(submit, run, run, np.where(np.arange(jobs) == 0, 4, size))
        simulator = HPC(PROCESSORS, max_time=3000).simulator()
        simulator.load([jobset], get_objective("bounded_slowdown"))
        least[waiting] = np.inf
        for _ in range(3):
            began = time.process_time()
            simulator.play(policy)
            least[waiting] = min(least[waiting], time.process_time() - began)
    # Each job costs a little when it arrives; a look at each at each event would be 50 times.
    assert least[50_000] < 12 * least[1000]
