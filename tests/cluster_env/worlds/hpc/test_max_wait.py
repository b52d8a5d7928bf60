"""The bound on waits: what a plain loop does, what `HPC` promises, and nothing where it is off."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_env.core.errors import InputError
from cluster_env.core.invariants import check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.objectives import get_objective
from cluster_env.sites.description import NodeGroup, Site
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import BACKFILLING, Rule
from cluster_env.worlds.hpc.scorer import MODES, SIZE, Scorer
from tests.cluster_env.worlds.hpc.hpc_jobs import PROCESSORS, jobset_of, played, small_jobsets
from tests.cluster_env.worlds.hpc.plain_rules import plain_starts
from tests.cluster_env.worlds.hpc.test_choosing import assert_same
from tests.cluster_env.worlds.hpc.test_reservations import patient_jobsets

WORLD = HPC(processors=PROCESSORS, queue=16)
ORDERS = ["sjf", "saf", "lcfs", "wfp3", "unicep", "tetris", "f1"]
bounds = st.integers(1, 9)

STARVED = jobset_of(
    np.arange(0, 200, 5), np.full(40, 12), np.full(40, 12), np.where(np.arange(40) == 1, 8, 4)
)
"""Job 1 needs the whole machine, of which the others hold at least a half at any time."""


def bounded(max_wait: int, **options) -> HPC:
    return replace(WORLD, max_wait=max_wait, **options)


def latest_starts(jobset: JobSet, schedule: Schedule, max_wait: int) -> list[int]:
    """When each job starts at the latest, by the theorem in the docstring of `HPC`."""
    start, estimate = schedule.start, jobset.attributes["estimate"]
    latest = []
    for job, due in enumerate((jobset.arrival + max_wait).tolist()):
        runs = (start <= due) & (schedule.finish > due)
        before = (np.arange(start.size) < job) & (start > due)
        ends = (start + estimate)[runs]
        latest.append(int(max(due, *ends, 0) + estimate[before].sum()))
    return latest


def assert_promise(jobset: JobSet, schedule: Schedule, max_wait: int) -> None:
    assert (schedule.start <= latest_starts(jobset, schedule, max_wait)).all()


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(jobset=small_jobsets(corrected=True), max_wait=bounds, order=st.sampled_from(ORDERS))
@settings(max_examples=60)
def test_bounded_rules_are_those_of_a_plain_loop(
    order: str, backfilling: str, jobset: JobSet, max_wait: int
) -> None:
    """Estimates may be wrong in both directions, and corrected."""
    rule, world = Rule(order, backfilling), bounded(max_wait)
    schedule = played(world, [jobset], rule)
    check_schedule(schedule, [jobset], complete_until=world.max_time)
    assert schedule.start.tolist() == plain_starts(jobset, rule, PROCESSORS, max_wait)


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(
    jobset=patient_jobsets(),
    max_wait=bounds,
    order=st.sampled_from([*ORDERS, "priority", "random", "ljf"]),
)
@settings(max_examples=25)
def test_no_rule_lets_a_job_wait_for_longer_than_is_promised(
    backfilling: str, order: str, jobset: JobSet, max_wait: int
) -> None:
    schedule = played(bounded(max_wait), [jobset], Rule(order, backfilling))
    assert_promise(jobset, schedule, max_wait)


@given(jobset=small_jobsets(), max_wait=bounds, order=st.sampled_from(ORDERS))
@settings(max_examples=25)
def test_the_promise_holds_where_jobs_are_killed(order: str, jobset: JobSet, max_wait: int) -> None:
    schedule = played(bounded(max_wait, kill_at_estimate=True), [jobset], Rule(order, "easy"))
    assert_promise(jobset, schedule, max_wait)


@pytest.mark.parametrize("mode", MODES)
@given(jobset=patient_jobsets(), max_wait=bounds, seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_scorers_keep_the_promise_and_choose_as_they_play(
    mode: str, jobset: JobSet, max_wait: int, seed: int
) -> None:
    scorer = Scorer(np.random.default_rng(seed).standard_normal((SIZE, SIZE)), mode)
    assert_promise(jobset, played(bounded(max_wait), [jobset], scorer), max_wait)
    assert_same(bounded(max_wait), [jobset], scorer)


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(jobset=patient_jobsets(), max_wait=bounds, seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_promise_holds_whatever_is_believed_of_jobs_that_wait(
    backfilling: str, jobset: JobSet, max_wait: int, seed: int
) -> None:
    """Who is believed too short goes first and is backfilled, but never before overdue jobs."""
    rng = np.random.default_rng(seed)
    believed = rng.integers(1, jobset.attributes["estimate"], endpoint=True)
    jobset = replace(jobset, attributes={**jobset.attributes, "order_estimate": believed})
    scorer = Scorer(rng.standard_normal((SIZE, SIZE)), "easy")
    for policy in (Rule("sjf", backfilling), scorer):
        assert_promise(jobset, played(bounded(max_wait), [jobset], policy), max_wait)


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@given(jobset=small_jobsets(), max_wait=bounds)
def test_a_scorer_of_estimates_is_the_shortest_job_first(
    mode: str, jobset: JobSet, max_wait: int
) -> None:
    scorer, rule = Scorer.linear(mode, log_estimate=1.0), Rule("sjf", mode)
    starts = [played(bounded(max_wait), [jobset], one).start.tolist() for one in (scorer, rule)]
    assert starts[0] == starts[1]


@pytest.mark.parametrize("site", [None, Site((NodeGroup("n", 1, PROCESSORS),))])
@pytest.mark.parametrize("order", ["f1", "saf", "wfp3"])
@given(
    jobset=small_jobsets(corrected=True), max_wait=bounds, backfilling=st.sampled_from(BACKFILLING)
)
@settings(max_examples=25)
def test_decisions_one_by_one_are_those_that_are_played(
    order: str, site: Site | None, backfilling: str, jobset: JobSet, max_wait: int
) -> None:
    """Jobs that have just started count for as long as their users asked, as in a pass."""
    assert_same(bounded(max_wait, site=site), [jobset], Rule(order, backfilling))


@given(jobset=patient_jobsets(), max_wait=bounds, seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_any_actions_keep_the_promise(jobset: JobSet, max_wait: int, seed: int) -> None:
    """Also those of a policy that sees states alone and always waits as long as it may."""
    rng, row, rewards = np.random.default_rng(seed), np.zeros(1, np.int32), np.zeros(1)
    simulator = bounded(max_wait).simulator()
    simulator.load([jobset], get_objective("slowdown"))
    lazy = seed % 3 == 0
    while simulator.active[0]:
        action = 16 if lazy else int(rng.integers(-1, 17))
        simulator.step(row, np.array([action], np.int32), rewards)
    assert_promise(jobset, simulator.schedule(), max_wait)


def test_without_a_bound_a_job_starves_and_with_it_it_does_not() -> None:
    free, kept = (played(world, [STARVED], Rule("saf", "skip")) for world in (WORLD, bounded(20)))
    assert free.start[1] > 180
    assert kept.start[1] <= 40
    with pytest.raises(AssertionError):
        assert_promise(STARVED, free, 20)
    assert_promise(STARVED, kept, 20)


@pytest.mark.parametrize("rule", [Rule("saf"), Rule("wfp3", "skip"), Scorer.linear("easy")])
@given(jobset=small_jobsets(corrected=True))
@settings(max_examples=30)
def test_a_bound_that_nobody_reaches_changes_nothing(rule: Rule | Scorer, jobset: JobSet) -> None:
    off, far = (played(bounded(bound), [jobset], rule).start.tolist() for bound in (0, 10_000))
    assert off == far


@given(jobset=small_jobsets(), max_wait=bounds)
def test_conservative_first_come_first_served_needs_no_bound(jobset: JobSet, max_wait: int) -> None:
    rule = Rule("fcfs", "conservative")
    starts = played(bounded(max_wait), [jobset], rule).start.tolist()
    assert starts == played(WORLD, [jobset], rule).start.tolist()


@given(jobset=small_jobsets(), rule=st.sampled_from([Rule("sjf", "easy"), Rule("saf", "skip")]))
def test_a_bound_of_a_second_is_conservative_first_come_first_served(
    jobset: JobSet, rule: Rule
) -> None:
    """As long as no two jobs come within that second."""
    columns = (2 * jobset.duration, 2 * jobset.attributes["estimate"], jobset.demand)
    arrival = 2 * (jobset.arrival + np.arange(jobset.num_jobs))
    apart = jobset_of(arrival, *columns)
    conservative = played(WORLD, [apart], Rule("fcfs", "conservative"))
    assert played(bounded(1), [apart], rule).start.tolist() == conservative.start.tolist()


def test_memory_is_kept_for_an_overdue_job_too() -> None:
    """From 10 on job 1 has all memory reserved for 12; job 5, which needs none, passes it."""
    demand = [[1, 6], [1, 8], [1, 2], [1, 2], [1, 2], [1, 0]]
    run = [10, 5, 10, 10, 10, 50]
    jobset = jobset_of([0, 1, 2, 10, 11, 11], run, run, demand)
    world = HPC(PROCESSORS, memory=8)
    starts = played(world, [jobset], Rule("saf", "skip")).start
    assert starts.tolist() == [0, 21, 2, 10, 11, 11]
    kept = played(replace(world, max_wait=8), [jobset], Rule("saf", "skip")).start
    assert kept.tolist() == [0, 12, 2, 17, 17, 11]


@pytest.mark.parametrize("max_wait", [-1, 2**31])
def test_impossible_bounds_are_refused(max_wait: int) -> None:
    with pytest.raises(InputError, match="max_wait must be 0"):
        bounded(max_wait)
